package lint

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// records are documents whose lines may be of any width: lists by date, and a page that a program writes.
var records = append([]string{"CHANGELOG.md"}, unread...)

// wideProse names the lines of prose in documents that are wider than a comment may be. Code and blocks that a test or
// a script renders are free.
func wideProse(all []*source) (out []string) {
	for _, s := range all {
		if filepath.Ext(s.path) != ".md" || slices.Contains(records, s.path) {
			continue
		}
		code, rendered, n := false, false, 0
		for line := range strings.Lines(s.text) {
			n++
			line = strings.TrimRight(line, "\r\n")
			switch wide := utf8.RuneCountInString(line); {
			case strings.HasPrefix(line, "```"):
				code = !code
			case strings.HasPrefix(line, "<!-- "):
				rendered = line != "<!-- end -->"
			case !code && !rendered && wide > maxColumns && !unbreakable(line):
				out = append(out, fmt.Sprintf("%s:%d: %d columns, at most %d", s.path, n, wide, maxColumns))
			}
		}
	}
	return out
}

// unbreakable says that a line cannot be wrapped: a row of a table, a heading, a picture, indented code.
func unbreakable(line string) bool {
	for _, begin := range []string{"|", "#", "![", "    "} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

func TestProseWidth(t *testing.T) { report(t, wideProse(documents(t))) }

func TestProseWidthCanFail(t *testing.T) {
	wide := strings.Repeat("λ ", maxColumns/2)
	refuse(t, wideProse, map[string]string{"docs/x.md": "# X\n\n" + wide + "w\n"})
	refuse(t, wideProse, map[string]string{"docs/x.md": "```\n```\n<!-- a -->\n<!-- end -->\n- " + wide})
	for name, text := range map[string]string{
		"docs/x.md":    wide + "\n", // as wide as a line may be, though it has more bytes
		"docs/y.md":    "| " + wide + " |\n## " + wide + "\n![" + wide + "](x.png)\n\n    " + wide + "\n",
		"docs/z.md":    "```sh\n" + wide + wide + "\n```\n<!-- results/x -->\n" + wide + wide + "\n<!-- end -->\n",
		"CHANGELOG.md": "- " + wide + wide,
		"model/x.go":   "package model // " + wide,
	} {
		pass(t, wideProse, map[string]string{name: text})
	}
}
