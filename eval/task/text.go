package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/model"
	"antiphase/tokenizer"
)

// heldOut returns n pieces of held-out text of at least length tokens each, if documents are that long, and their
// source. Generated text uses a seed that training does not use.
func heldOut(ctx context.Context, p *eval.Plan, spec string, length, n int) (out []string, source string, err error) {
	bytes := plainBytes(p, length)
	source = spec
	var docs []string
	switch {
	case spec == "" && p.Data == "":
		source = eval.StandIn
		if err = p.Fits(n, length); err == nil {
			docs, err = generated(ctx, p, bytes, n)
		}
	case strings.HasPrefix(spec, "set:"):
		docs, err = setDocuments(ctx, p, strings.TrimPrefix(spec, "set:"))
	default:
		if spec == "" {
			source = "lm/valid"
			if spec, err = p.Find(ctx, source); err != nil {
				return nil, "", err
			}
		}
		docs, err = documents(ctx, p, spec)
	}
	if err != nil {
		return nil, "", err
	}
	out = pieces(docs, bytes, n)
	for i := range out {
		if err := ctx.Err(); err != nil {
			return nil, "", err
		}
		out[i] = trimmed(p, out[i], length)
	}
	return out, source, nil
}

// trimmed is the beginning of a text that has length tokens after the first, or slightly more: the excess would be
// scored in a second window with less context.
func trimmed(p *eval.Plan, text string, length int) string {
	lo, hi := 0, len(text) // lo has too few tokens, hi enough
	if p.Count(text) <= length {
		return text
	}
	for range 12 {
		n := p.Count(text[:hi])
		if n <= length+2 || hi-lo < 2 {
			break
		}
		mid := min(max(hi*(length+2)/n, lo+1), hi-1)
		for mid > lo && !utf8.RuneStart(text[mid]) {
			mid--
		}
		if p.Count(text[:mid]) <= length {
			lo = mid
			continue
		}
		hi = mid
	}
	for hi-lo > 1 && p.Count(text[:hi]) > length+2 { // shares of bytes mislead where tokens or characters are uneven
		mid := lo + (hi-lo)/2
		if mid = nextCharacter(text, mid); mid >= hi {
			if mid = nextCharacter(text, lo+1); mid >= hi {
				break
			}
		}
		if p.Count(text[:mid]) <= length {
			lo = mid
		} else {
			hi = mid
		}
	}
	return text[:hi]
}

// nextCharacter is the first byte at or after at that begins a character, or the end.
func nextCharacter(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// generated are n documents of at least this many bytes: the generator's own lengths vary eightfold.
func generated(ctx context.Context, p *eval.Plan, bytes, n int) ([]string, error) {
	s := data.NewSynthetic()
	s.Seed, s.Bytes, s.Mix = p.Seed+1<<40, min(max(bytes, 128)*5/4, 1<<24),
		map[string]int{"needle": 4, "kv": 4, "prose": 1}
	var out []string
	for i := 0; len(out) < n && i < 64*n; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if d := s.Document(i); len(d.Text) >= bytes {
			out = append(out, d.Text)
		}
	}
	return out, nil
}

// mostDocuments is enough for any number of pieces worth waiting for.
const mostDocuments = 4096

func documents(ctx context.Context, p *eval.Plan, spec string) ([]string, error) {
	if _, err := os.Stat(spec); err == nil {
		if err := p.Uses(ctx, spec); err != nil {
			return nil, err
		}
	}
	src, err := data.Open(spec)
	if err != nil {
		return nil, err
	}
	var docs []string
	for d, err := range src.Documents(ctx) {
		if err != nil {
			return nil, err
		}
		if docs = append(docs, d.Text); len(docs) == mostDocuments {
			break
		}
	}
	return docs, nil
}

// setDocuments are the held-out documents of a token set, as text. Its tokenizer is the one stored with it, otherwise
// the model's own.
func setDocuments(ctx context.Context, p *eval.Plan, dir string) ([]string, error) {
	tok, err := tokenizer.Load(filepath.Join(filepath.Dir(filepath.Clean(dir)), "tokenizer.json"))
	if errors.Is(err, fs.ErrNotExist) && p.Tokens != nil {
		tok, err = p.Tokens, nil
	}
	if err != nil {
		return nil, fmt.Errorf("text: set:%s: its tokenizer: %w", dir, err)
	}
	set, err := data.OpenSet(dir, false)
	if err != nil {
		return nil, fmt.Errorf("text: set:%s: %w", dir, err)
	}
	defer set.Close()
	split, err := set.Split(data.Valid)
	if err == nil {
		err = split.Verify()
	}
	if err != nil {
		return nil, fmt.Errorf("text: set:%s: %w", dir, err)
	}
	var docs []string
	var ids []int32
	for i := int64(0); i < split.Docs() && len(docs) < mostDocuments; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ids = split.Document(ids[:0], i)
		var text []byte
		for _, id := range ids {
			if !tok.Special(id) {
				text = append(text, tok.TokenBytes(id)...)
			}
		}
		docs = append(docs, strings.ToValidUTF8(string(text), "\uFFFD"))
	}
	return docs, nil
}

// pieces divides documents: the k-th piece of every document in turn.
func pieces(docs []string, bytes, n int) (out []string) {
	for k, found := 0, true; found; k++ {
		found = false
		for _, text := range docs {
			if piece := cutText(text, k*bytes, bytes); strings.TrimSpace(piece) != "" {
				out, found = append(out, piece), true
			}
			if len(out) == n {
				return out
			}
		}
	}
	return out
}

// cutText is text[at:at+n] aligned to whole characters; a piece that the text cannot fill is taken only at its
// beginning.
func cutText(text string, at, n int) string {
	if at > 0 && at+n > len(text) {
		return ""
	}
	end := nextCharacter(text, min(at+n, len(text)))
	return text[min(nextCharacter(text, at), end):end]
}

// plainBytes is an amount of plain text that certainly makes that many tokens: a third more than average.
func plainBytes(p *eval.Plan, tokens int) int {
	text := data.Prose(rand.New(rand.NewPCG(1, 1)), 4096)
	return max(int(4.0/3*float64(tokens)*float64(len(text))/float64(p.Count(text))), 1)
}

// textSettings are those of every task that inspects the model on held-out text.
func textSettings(length int) []eval.Setting {
	return []eval.Setting{
		{Key: "text", Default: "", Doc: "held-out text: a file, a folder or set:FOLDER; empty: lm/valid of --data, " +
			"or generated documents without it"},
		{Key: "length", Default: length, Rule: eval.AtLeast(2).OrZero(), Doc: "tokens of a sequence; 0: the context"},
	}
}

// validLength rejects sequences longer than the context.
func validLength(p *eval.Plan) error {
	if n := p.Int("length"); n > p.Context {
		return eval.BadSetting("length is %d, must be 2 to the context, %d tokens", n, p.Context)
	}
	return nil
}

// sequenceLength is the number of tokens of a sequence.
func sequenceLength(p *eval.Plan) int {
	if n := p.Int("length"); n > 0 {
		return n
	}
	return p.Context
}

// sequences are n held-out texts for each model, the number of tokens of each that it reads, and their source.
func sequences(ctx context.Context, p *eval.Plan, n int) (texts []string, length int, source string, err error) {
	length = sequenceLength(p)
	texts, source, err = heldOut(ctx, p, p.Text("text"), length, n)
	if err == nil && len(texts) == 0 {
		err = errors.New("text: there is none")
	}
	return texts, length, source, err
}

// read returns a text's tokens, at most length of them.
func read(s *eval.Subject, text string, length int) *model.Batch {
	ids := s.Encode(text)
	ids = ids[:min(len(ids), length)]
	return &model.Batch{B: 1, T: len(ids), IDs: ids}
}
