package lint

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	inAnchor   = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// deadLinks names the links of documents to files and headings that are not there. exists says whether a path of the
// tree is; headings are those of the documents given.
func deadLinks(all []*source, exists func(path string) bool) (out []string) {
	anchors := map[string]bool{}
	for _, s := range all {
		for _, m := range heading.FindAllStringSubmatch(s.text, -1) {
			anchors[s.path+"#"+anchor(m[1])] = true
		}
	}
	for _, s := range all {
		for _, m := range linkTarget.FindAllStringSubmatch(s.text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, place, inside := strings.Cut(m[1], "#")
			to := s.path
			if file != "" {
				to = path.Join(path.Dir(s.path), file)
			}
			if !exists(to) || inside && !anchors[to+"#"+place] {
				out = append(out, fmt.Sprintf("%s links to %s, which is not there", s.path, m[1]))
			}
		}
	}
	return out
}

// anchor is the name that a heading has in a link.
func anchor(heading string) string {
	return strings.ReplaceAll(inAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

func TestLinks(t *testing.T) {
	report(t, deadLinks(documents(t), func(path string) bool {
		_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(path)))
		return err == nil
	}))
}

func TestLinksCanFail(t *testing.T) {
	rule := func(all []*source) []string {
		return deadLinks(all,
			func(path string) bool { return path == "docs/a.md" || path == "docs/b.md" || path == "x.go" })
	}
	b := "# What `--x` does: λ, and more\n"
	for _, text := range []string{"[x](y.go)", "[x](x.go)", "[b](b.md#what)", "[self](#nothing)",
		"[two\nlines](c.md)"} {
		refuse(t, rule, map[string]string{"docs/a.md": text, "docs/b.md": b})
	}
	for _, text := range []string{"[x](../x.go)", "[b](b.md)", "[b](b.md#what---x-does-λ-and-more)", "# A\n[self](#a)",
		"[far](https://example.com/#x)", "a list](with a space)"} {
		pass(t, rule, map[string]string{"docs/a.md": text, "docs/b.md": b})
	}
}
