package task

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// COPAPrompt replaces a premise's full stop by the connective of a cause or an effect.
func COPAPrompt(premise, question string) (string, error) {
	connector := map[string]string{"cause": "because", "effect": "therefore"}[question]
	if connector == "" {
		return "", fmt.Errorf("field \"question\" is %q, want cause or effect", question)
	}
	premise = strings.TrimSpace(premise)
	_, n := utf8.DecodeLastRuneInString(premise)
	return premise[:len(premise)-n] + " " + connector, nil
}

// COPAChoice continues with a sentence: in lower case, after a space (the harness's delimiter is a second one).
func COPAChoice(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	return " " + strings.ToLower(string(first)) + s[n:]
}

// WSCPrompt marks the pronoun, whose position is counted in words, removes spaces before punctuation, and asks whom it
// refers to.
func WSCPrompt(text, noun, pronoun string, at int) (string, error) {
	list := strings.Fields(text)
	if at < 0 || at > len(list) {
		return "", fmt.Errorf("field \"span2_index\" is %d, want a place among %d words", at, len(list))
	}
	before := strings.Join(list[:at], " ")
	runes := []rune(text)
	after := string(runes[min(len(runes), utf8.RuneCountInString(before)+utf8.RuneCountInString(pronoun)+1):])
	return "Passage: " + joinedUp(before+" *"+pronoun+"*"+after) +
		"\nQuestion: In the passage above, does the pronoun \"*" + pronoun + "*\" refer to \"*" + noun +
		"*\"?\nAnswer:", nil
}

var beforeMark = regexp.MustCompile(` (['.,])`)

// joinedUp removes the spaces that tokenized text has next to punctuation.
func joinedUp(s string) string {
	for _, pair := range [][2]string{{" n't", "n't"}, {" )", ")"}, {"( ", "("}, {`" `, `"`}, {` "`, `"`}} {
		s = strings.ReplaceAll(s, pair[0], pair[1])
	}
	return beforeMark.ReplaceAllString(s, "$1")
}

// HellaSwagPrompt joins the two halves of a scene, the second capitalised as in Python.
func HellaSwagPrompt(activity, a, b string) string {
	if first, n := utf8.DecodeRuneInString(b); n > 0 {
		b = string(unicode.ToTitle(first)) + strings.ToLower(b[n:])
	}
	return CleanWikiHow(activity + ": " + a + " " + b)
}

var bracketed = regexp.MustCompile(`\[.*?\]`)

// CleanWikiHow removes WikiHow's markup.
func CleanWikiHow(s string) string {
	s = strings.ReplaceAll(strings.TrimSpace(s), " [title]", ". ")
	return strings.ReplaceAll(bracketed.ReplaceAllString(s, ""), "  ", " ")
}
