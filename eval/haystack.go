package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"antiphase/data"
)

// haystack gives at most n bytes of whole sentences.
type haystack func(g *rand.Rand, n int) string

// haystack is the text that needles are hidden in, and its bytes per token. There must be enough for the longest prompt.
func (p *Plan) haystack(lengths []int) (haystack, float64, error) {
	longest := slices.Max(lengths)
	var hay haystack = data.Prose
	size := math.MaxInt
	if p.Text("haystack") != "" || p.Data != "" {
		text, err := p.haystackText(16 * longest) // more than tokens have bytes
		if err != nil {
			return nil, 0, err
		}
		hay, size = sentencesOf(text), len(text)
	}
	sample := hay(rand.New(rand.NewPCG(p.Seed, 1)), 8192)
	if len(sample) < 200 {
		return nil, 0, fmt.Errorf("haystack: it has no sentences; want running text with full stops")
	}
	perToken := float64(len(sample)) / float64(p.count(sample))
	if need := int(float64(longest) * perToken); size < need {
		return nil, 0, fmt.Errorf("haystack: it has %d bytes, a prompt of %d tokens needs about %d; give more text", size, longest, need)
	}
	return hay, perToken, nil
}

// haystackText reads the beginning of a file or folder, or of the held-out text: enough that prompts differ.
func (p *Plan) haystackText(least int) (string, error) {
	path := p.Text("haystack")
	if path == "" {
		var err error
		if path, err = p.find("lm/valid"); err != nil {
			return "", fmt.Errorf("haystack: %w; or name a text", err)
		}
	}
	src, err := data.Open(path)
	if err != nil {
		return "", fmt.Errorf("haystack: %w", err)
	}
	var b strings.Builder
	for doc, err := range src.Documents(context.Background()) {
		if err != nil {
			return "", fmt.Errorf("haystack: %w", err)
		}
		b.WriteString(strings.Join(strings.Fields(doc.Text), " ") + " ") // one line, as prompts end with a line of their own
		if b.Len() > max(least, 4<<20) {
			break
		}
	}
	return b.String(), nil
}

// sentencesOf takes pieces of a text, each from a random sentence on.
func sentencesOf(text string) haystack {
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
