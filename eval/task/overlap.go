package task

import (
	"slices"
	"strings"
	"unicode"
)

// words are a text's words in lower case, without punctuation.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// normalText is a text as exact match compares it: lower case, without punctuation and articles (SQuAD's rule).
func normalText(text string) string { return strings.Join(contentWords(text), " ") }

// contentWords are the words that normalText keeps: punctuation is deleted, not replaced by a space, so that "U.S." is
// one word.
func contentWords(text string) []string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || unicode.IsSymbol(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return slices.DeleteFunc(strings.Fields(text), func(w string) bool { return w == "a" || w == "an" || w == "the" })
}

// wordF1 is the harmonic mean of precision and recall over words, counted with multiplicity.
func wordF1(a, b string) float64 {
	x, y := contentWords(a), contentWords(b)
	if len(x) == 0 || len(y) == 0 {
		return truth(len(x) == len(y))
	}
	count := map[string]int{}
	for _, w := range y {
		count[w]++
	}
	same := 0
	for _, w := range x {
		if count[w] > 0 {
			count[w]--
			same++
		}
	}
	return f1(float64(same), len(x), len(y))
}

// f1 is 2PR/(P+R) with P = same/n and R = same/m.
func f1(same float64, n, m int) float64 { return 2 * same / float64(n+m) }

// rougeL is the F1 of the longest common subsequence of words.
func rougeL(a, b string) float64 {
	x, y := words(a), words(b)
	if len(x) == 0 || len(y) == 0 {
		return 0
	}
	row := make([]int, len(y)+1) // lengths for the words of x so far
	for _, w := range x {
		diagonal := 0
		for j, v := range y {
			above := row[j+1]
			switch {
			case w == v:
				row[j+1] = diagonal + 1
			case row[j] > row[j+1]:
				row[j+1] = row[j]
			}
			diagonal = above
		}
	}
	return f1(float64(row[len(y)]), len(x), len(y))
}

// groundedSpan is the minimum number of consecutive words that count as taken from a source; a shorter text must occur
// as a whole.
const groundedSpan = 3

// grounded is the share of a text's words in spans that occur verbatim in the source: 1 for copied text, 0 for invented
// text. A text without words is not grounded.
func grounded(text, source string) float64 {
	x, y := words(text), words(source)
	if len(x) == 0 {
		return 0
	}
	least := min(groundedSpan, len(x))
	at := map[string][]int{}
	for j, w := range y {
		at[w] = append(at[w], j)
	}
	covered := make([]bool, len(x)) // spans may overlap: each word counts once
	for i := range x {
		longest := 0
		for _, j := range at[x[i]] {
			n := 0
			for i+n < len(x) && j+n < len(y) && x[i+n] == y[j+n] {
				n++
			}
			longest = max(longest, n)
		}
		if longest >= least {
			for k := range longest {
				covered[i+k] = true
			}
		}
	}
	in := 0
	for _, c := range covered {
		if c {
			in++
		}
	}
	return float64(in) / float64(len(x))
}
