package tokenizer

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// TestUnicodeCounts compares how many characters have each property with the numbers that Hugging Face tokenizers 0.23
// gives, and the sum of their numbers, so that no two errors cancel out. It fails when Go's Unicode tables move to
// another version: the ranges in unicode.go must then be made again.
func TestUnicodeCounts(t *testing.T) {
	changes := func(f func(string) string) func(rune) bool {
		return func(r rune) bool { s := string(r); return f(s) != s }
	}
	nfkd := normalForm(norm.NFKD)
	for name, c := range map[string]struct {
		is   func(rune) bool
		want int
		sum  int
	}{
		"letter":      {isLetter, 141028, 15240929258},
		"number":      {isNumber, 1911, 110651895},
		"digit":       {isDigit, 1924, 111666371},
		"punctuation": {isPunct, 726, 20675981},
		"word":        {isWord, 144667, 15621645388},
		"accent":      {isAccent, 2097, 286880651},
		"lower":       {changes(lowercase), 1488, 36394052},
		"nfkd":        {changes(func(s string) string { return nfkd(piece{s, true}, 1<<20).s }), 16894, 936805002},
	} {
		n, sum := 0, 0
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if utf8.ValidRune(r) && c.is(r) {
				n++
				sum += int(r)
			}
		}
		if n != c.want || sum != c.sum {
			t.Errorf("%s: %d characters with the sum %d; want %d and %d", name, n, sum, c.want, c.sum)
		}
	}
}

// The lower case of every character, by a weighted sum of what it adds to its number, and by hand where Go knows none.
func TestLowerCase(t *testing.T) {
	sum := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		sum += int(lower(r)-r) * int(r%251+1)
	}
	if sum != 120970591 {
		t.Errorf("the sum is %d", sum)
	}
	for r, want := range map[rune]rune{'A': 'a', 'É': 'é', 'Σ': 'σ', 0x10D50: 0x10D70, 0x10D65: 0x10D85,
		0x10D66: 0x10D66, 0x16EA0: 0x16EBB, 0x16EB8: 0x16ED3, 0x16EB9: 0x16EB9,
		0xA7CB: 0x264, 0xA7DC: 0x19B, 0x1C89: 0x1C8A, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF, 0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5,
		0xA7DA: 0xA7DB, 0x1C8A: 0x1C8A} {
		if got := lower(r); got != want {
			t.Errorf("%U becomes %U, want %U", r, got, want)
		}
	}
}

// Characters that the normal forms do not know stand as they are, and the text on both sides of each is normalized by
// itself.
func TestNormalFormsBesideNewCharacters(t *testing.T) {
	const split, whole = "e\u0301", "\u00e9"
	for form, want := range map[norm.Form]string{norm.NFC: whole, norm.NFD: split, norm.NFKC: whole, norm.NFKD: split} {
		f := normalForm(form)
		for _, table := range []ranges{newerMarks, newerFolds} {
			for _, r := range table {
				for _, c := range []string{string(r[0]), string(r[1])} {
					for in, out := range map[string]string{
						split + c + whole: want + c + want, whole + c + c + split + c: want + c + c + want + c, c +
							split: c + want, c: c,
					} {
						if got := f(piece{in, true}, 1<<20).s; got != out {
							t.Fatalf("form %d of %+q is %+q, want %+q", form, in, got, out)
						}
					}
				}
			}
		}
	}
}

func TestClassTable(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if got, want := classOf(r), slowClass(r); got != want {
			t.Fatalf("class of %U is %d; want %d", r, got, want)
		}
	}
}
