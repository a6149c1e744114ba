package lint

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	// Written in pieces, so that this file does not offend.
	leftover = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	// A path of one machine: its folder follows a quote, a space or another delimiter, never a URL's host.
	absolute = regexp.MustCompile(`(^|[\s"'` + "`" + `(=,:])/(home|root|work|tmp|Users|mnt)/`)
)

// matches names the lines that hold pattern.
func matches(s *source, pattern *regexp.Regexp, what string) (out []string) {
	n := 0
	for line := range strings.Lines(s.text) {
		n++
		if m := pattern.FindString(line); m != "" {
			out = append(out, fmt.Sprintf("%s:%d: %s %q", s.path, n, what, strings.TrimSpace(m)))
		}
	}
	return out
}

// leftovers names the lines that promise work instead of doing it.
func leftovers(all []*source) (out []string) {
	for _, s := range all {
		out = append(out, matches(s, leftover, "do it or drop it:")...)
	}
	return out
}

// absolutePaths names the lines, tests aside, that hold a path of one machine.
func absolutePaths(all []*source) (out []string) {
	for _, s := range all {
		if !s.test {
			out = append(out, matches(s, absolute, "a path of one machine:")...)
		}
	}
	return out
}

func TestNoLeftovers(t *testing.T)     { report(t, leftovers(tree(t))) }
func TestNoAbsolutePaths(t *testing.T) { report(t, absolutePaths(tree(t))) }
