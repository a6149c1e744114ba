package tokenizer

import "unicode/utf8"

// Split patterns with hand-written scanners, as tokenizer.json files spell them. Other patterns go through a
// backtracking regular expression engine, which is many times slower.
const (
	// PatternGPT2 is the pattern of GPT-2, GPT-NeoX and of the ByteLevel pre-tokenizer.
	PatternGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	// PatternLlama3 is the pattern of Llama 3 and of cl100k: numbers in groups of up to three digits.
	PatternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// PatternQwen2 is PatternLlama3 with single digits.
	PatternQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// scanner returns the end of the word that starts at byte i < len(s). The known patterns match at every position, so
// words follow each other without gaps.
type scanner func(s string, i int) int

// knownScanner returns the scanner of a pattern text, or nil.
func knownScanner(pattern string) scanner {
	switch pattern {
	case PatternGPT2:
		return scanGPT2
	case PatternLlama3:
		return func(s string, i int) int { return scanLlama3(s, i, 3) }
	case PatternQwen2:
		return func(s string, i int) int { return scanLlama3(s, i, 1) }
	}
	return nil
}

// at returns the class and the width of the character at byte i; past the end both are zero.
func at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return classOf(r), n
}

// run returns the end of the run of class c that starts at byte i.
func run(s string, i int, c class) int {
	for {
		k, n := at(s, i)
		if n == 0 || k != c {
			return i
		}
		i += n
	}
}

// scanGPT2 follows PatternGPT2, alternative by alternative.
func scanGPT2(s string, i int) int {
	if s[i] == '\'' {
		if n := contraction(s[i+1:], false); n > 0 {
			return i + 1 + n
		}
	}
	c, n := at(s, i)
	if s[i] == ' ' {
		if d, m := at(s, i+1); m > 0 && d != space {
			return run(s, i+1+m, d)
		}
	}
	if c != space {
		return run(s, i+n, c)
	}
	return spaces(s, i, run(s, i+n, space))
}

// scanLlama3 follows PatternLlama3 and PatternQwen2; digits is the longest group of numbers.
func scanLlama3(s string, i, digits int) int {
	if s[i] == '\'' {
		if n := contraction(s[i+1:], true); n > 0 {
			return i + 1 + n
		}
	}
	c, n := at(s, i)
	switch c {
	case letter:
		return run(s, i+n, letter)
	case number:
		for i += n; digits > 1; digits-- {
			d, m := at(s, i)
			if m == 0 || d != number {
				break
			}
			i += m
		}
		return i
	}
	d, m := at(s, i+n)
	if m > 0 && d == letter && s[i] != '\r' && s[i] != '\n' {
		return run(s, i+n+m, letter)
	}
	if c == other {
		return lineEnds(s, run(s, i+n, other))
	}
	if s[i] == ' ' && m > 0 && d == other {
		return lineEnds(s, run(s, i+n+m, other))
	}
	end := run(s, i+n, space)
	for j := end; j > i; j-- { // \s*[\r\n]+ reaches to the last line end of the run
		if s[j-1] == '\r' || s[j-1] == '\n' {
			return j
		}
	}
	return spaces(s, i, end)
}

// spaces applies \s+(?!\S)|\s+ to the white space s[i:end]: before a word it leaves the last character to that word.
func spaces(s string, i, end int) int {
	if end == len(s) {
		return end
	}
	_, n := utf8.DecodeLastRuneInString(s[i:end])
	if end-n > i {
		return end - n
	}
	return end
}

func lineEnds(s string, i int) int {
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// contraction returns the length of s, t, re, ve, m, ll or d at the start of s, or 0. Case folding also takes the long
// s.
func contraction(s string, fold bool) int {
	if s == "" {
		return 0
	}
	c := s[0]
	if fold && c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	switch c {
	case 's', 't', 'm', 'd':
		return 1
	case "ſ"[0]:
		if fold && len(s) > 1 && s[:2] == "ſ" {
			return 2
		}
		return 0
	}
	if len(s) < 2 {
		return 0
	}
	d := s[1]
	if fold && d >= 'A' && d <= 'Z' {
		d += 'a' - 'A'
	}
	if c == 'r' && d == 'e' || c == 'v' && d == 'e' || c == 'l' && d == 'l' {
		return 2
	}
	return 0
}
