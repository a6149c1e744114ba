package task

import (
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asking is the start of the part of a prompt that noise does not change: its last line, which asks, or its last word
// if there is only one line.
func asking(prompt string) int {
	body := strings.TrimRightFunc(prompt, unicode.IsSpace)
	if at := strings.LastIndexByte(body, '\n'); at >= 0 {
		return at + 1
	}
	return strings.LastIndexFunc(body, unicode.IsSpace) + 1
}

// noisyWords changes a share of the words before the question. Whether a word changes depends on the seed and on the
// text before it: prompts with a common prefix are perturbed alike, and a word changed at one dose is changed at every
// larger one. Words with digits are not changed, because answers consist of them.
func noisyWords(prompt string, kind *noiseKind, dose float64, seed uint64) string {
	end := asking(prompt)
	h := fnv.New64a()
	h.Write([]byte(kind.name))
	for i := range 8 {
		h.Write([]byte{byte(seed >> (8 * i))})
	}
	words, gaps := wordsOf(prompt[:end])
	var b strings.Builder
	b.WriteString(gaps[0])
	for i := 0; i < len(words); i++ {
		w := words[i]
		h.Write([]byte(w + " "))
		x := mix(h.Sum64())
		hit := float64(x>>11)/(1<<53) < dose && !strings.ContainsFunc(w, unicode.IsDigit)
		switch {
		case !hit:
			b.WriteString(w)
		case kind.word == nil: // swapped with the next
			if i+1 < len(words) && !strings.ContainsFunc(words[i+1], unicode.IsDigit) {
				b.WriteString(words[i+1] + gaps[i+1])
				i++
				h.Write([]byte(words[i] + " "))
			}
			b.WriteString(w)
		default:
			changed := kind.word(mix(x), w)
			b.WriteString(changed)
			if changed == "" && !strings.Contains(gaps[i+1], "\n") {
				continue // including the space after it
			}
		}
		b.WriteString(gaps[i+1])
	}
	return b.String() + prompt[end:]
}

// wordsOf splits a text into words and the white space around them: gap, word, gap, … gap.
func wordsOf(text string) (words, gaps []string) {
	for {
		rest := strings.TrimLeftFunc(text, unicode.IsSpace)
		gaps = append(gaps, text[:len(text)-len(rest)])
		if rest == "" {
			return words, gaps
		}
		n := strings.IndexFunc(rest, unicode.IsSpace)
		if n < 0 {
			n = len(rest)
		}
		words, text = append(words, rest[:n]), rest[n:]
	}
}

// mix spreads bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// typo makes one mistake in a word: two letters exchanged, one dropped, one doubled, or an adjacent key. Short words
// are unchanged.
func typo(h uint64, word string) string {
	r := []rune(word)
	if len(r) < 3 || !utf8.ValidString(word) {
		return word
	}
	at := int((h >> 8) % uint64(len(r)-1))
	switch h % 4 {
	case 0:
		r[at], r[at+1] = r[at+1], r[at]
	case 1:
		r = append(r[:at], r[at+1:]...)
	case 2:
		r = append(r[:at+1], r[at:]...)
	default:
		if near := keyboard[unicode.ToLower(r[at])]; near != "" {
			r[at] = rune(near[int((h>>32)%uint64(len(near)))])
		}
	}
	return string(r)
}

// keyboard lists the adjacent letters of each letter.
var keyboard = map[rune]string{'a': "sqz", 'b': "vn", 'c': "xv", 'd': "sfe", 'e': "wrd", 'f': "dgr", 'g': "fht",
	'h': "gjy", 'i': "uok", 'j': "hku", 'k': "jli", 'l': "ko", 'm': "n", 'n': "bm", 'o': "ipl", 'p': "o", 'q': "wa",
	'r': "etf", 's': "adw", 't': "ryg", 'u': "yij", 'v': "cb", 'w': "qes",
	'x': "zc", 'y': "tuh", 'z': "xa"}
