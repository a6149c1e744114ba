package task

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// haystack is the text in which needles are hidden.
type haystack struct {
	text     func(g *rand.Rand, n int) string // at most n bytes of whole sentences
	perToken float64                          // bytes
	source   string
}

// newHaystack finds the text; there must be enough for the longest prompt.
func newHaystack(ctx context.Context, p *eval.Plan, lengths []int) (*haystack, error) {
	longest := slices.Max(lengths)
	hay := &haystack{text: data.Prose, source: eval.StandIn}
	size := math.MaxInt
	if p.Text("haystack") != "" || p.Data != "" {
		text, err := haystackText(ctx, p, 16*longest) // an upper bound on bytes per token
		if err != nil {
			return nil, err
		}
		hay.text, size, hay.source = sentencesOf(text), len(text), cmp.Or(p.Text("haystack"), "lm/valid")
	}
	sample := hay.text(rand.New(rand.NewPCG(p.Seed, 1)), 8192)
	if len(sample) < 200 {
		return nil, fmt.Errorf("haystack: it has no sentences; want running text with full stops")
	}
	hay.perToken = float64(len(sample)) / float64(p.Count(sample))
	if need := int(float64(longest) * hay.perToken); size < need {
		return nil, fmt.Errorf("haystack: it has %d bytes, a prompt of %d tokens needs about %d; give more text", size,
			longest, need)
	}
	return hay, nil
}

// haystackText reads the beginning of a file or folder, or of the held-out text: enough that prompts differ.
func haystackText(ctx context.Context, p *eval.Plan, least int) (string, error) {
	path := p.Text("haystack")
	if path == "" {
		var err error
		if path, err = p.Find(ctx, "lm/valid"); err != nil {
			return "", fmt.Errorf("haystack: %w; or name a text", err)
		}
	} else if _, err := os.Stat(path); err == nil {
		if err := p.Uses(ctx, path); err != nil {
			return "", fmt.Errorf("haystack: %w", err)
		}
	}
	src, err := data.Open(path)
	if err != nil {
		return "", fmt.Errorf("haystack: %w", err)
	}
	var b strings.Builder
	for doc, err := range src.Documents(ctx) {
		if err != nil {
			return "", fmt.Errorf("haystack: %w", err)
		}
		// One line, because prompts end with a separate line.
		b.WriteString(strings.Join(strings.Fields(doc.Text), " ") + " ")
		if b.Len() > max(least, 4<<20) {
			break
		}
	}
	return b.String(), nil
}

// sentencesOf takes pieces of a text, each starting at a random sentence.
func sentencesOf(text string) func(g *rand.Rand, n int) string {
	return func(g *rand.Rand, n int) string {
		from := 0
		if room := len(text) - n; room > 0 {
			at := g.IntN(room)
			if i := strings.Index(text[at:], ". "); i >= 0 && at+i+2 <= room {
				from = at + i + 2
			}
		}
		piece := text[from:min(from+n, len(text))]
		return piece[:strings.LastIndex(piece, ".")+1]
	}
}
