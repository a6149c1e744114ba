package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"antiphase/infer"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// Subject is one of our own models under test. It is an LM, it can choose under constraint, report losses per token,
// and be inspected.
type Subject struct {
	Name      string
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer
	Batch     int     // sequences per batch; default 8
	EOS       []int32 // ids that end a text; default the tokenizer's
	First     *int32  // before every text; default the tokenizer's beginning-of-text or else end-of-text token

	// Template formats a prompt as a user message with the model's chat template, up to where the answer begins; nil:
	// prompts are continued as text. Texts that are scored whole never use it.
	Template func(prompt string) (string, error)

	shared *infer.Shared // keeps its cache between calls
	low    layer.Lowbit
}

var (
	_ LM        = (*Subject)(nil)
	_ Chooser   = (*Subject)(nil)
	_ Tokenwise = (*Subject)(nil)
)

func (s *Subject) batch() int {
	if s.Batch > 0 {
		return s.Batch
	}
	return 8
}

// Close releases memory kept between calls; the model is kept. A caller that changes the model between calls must call
// Close, because keys of prompts are kept.
func (s *Subject) Close() {
	if s.shared != nil {
		s.shared.Free()
	}
	s.shared = nil
}

// SetLowbit makes the model use low-precision attention; the zero value restores exact attention. Cached keys of
// earlier calls have another precision and are dropped.
func (s *Subject) SetLowbit(q layer.Lowbit) error {
	s.Close()
	s.low = q
	return s.Model.SetLowbit(q)
}

// Intervene makes the model apply interventions to its heads (see model.Model.Intervene); none restores the plain
// model. Cached keys of earlier calls belong to another computation and are dropped.
func (s *Subject) Intervene(list ...layer.Intervention) error {
	s.Close()
	return s.Model.Intervene(list...)
}

// whole reports whether results depend on which rows are computed together, because of quantisation with one scale per
// sequence. Every sequence is then computed alone in one pass, so that the scale is the sequence's and not that of a
// batch or a chunk.
func (s *Subject) whole() bool { return s.low.Whole() }

// walk runs sequences through the model.
func (s *Subject) walk(ctx context.Context, walks []infer.Walk, show infer.Show) error {
	if s.shared == nil {
		s.shared = infer.NewShared(s.Model)
		s.shared.Whole = s.whole()
	}
	return s.shared.Run(ctx, walks, s.batch(), show)
}

// FirstToken is the token before every text: the one that separated documents in training.
func (s *Subject) FirstToken() (int32, bool) {
	if s.First != nil {
		return *s.First, true
	}
	if id, ok := s.Tokenizer.BOS(); ok {
		return id, true
	}
	return s.Tokenizer.EOS()
}

// Encode returns a text's ids after the first token.
func (s *Subject) Encode(text string) []int32 {
	var ids []int32
	if id, ok := s.FirstToken(); ok {
		ids = append(ids, id)
	}
	return s.Tokenizer.EncodeOrdinary(ids, text)
}

// Loglikelihood implements LM. Context and continuation are encoded together and split at the context's length, as in
// running text; white space at the context's end counts as part of the continuation. If the total exceeds the model's
// context, the beginning is dropped; a continuation that is longer than the context is scored in windows.
func (s *Subject) Loglikelihood(ctx context.Context, reqs []Continuation) ([]Score, error) {
	var walks []infer.Walk
	var of []int // the request of each walk
	for i, r := range reqs {
		whole, from, err := s.split(r)
		if err != nil {
			return nil, fmt.Errorf("eval: request %d: %w", i, err)
		}
		if from >= len(whole) {
			return nil, fmt.Errorf("eval: continuation %q of request %d has no tokens of its own", r.Text, i)
		}
		if from == 0 {
			return nil, fmt.Errorf("eval: request %d has no context, and the tokenizer no token to put in its place", i)
		}
		n := s.Model.Config.Context
		for len(whole)-from > n {
			walks, of = append(walks, infer.Walk{IDs: whole[from-1 : from+n], From: 1}), append(of, i)
			from += n
		}
		cut := max(0, len(whole)-n-1)
		walks, of = append(walks, infer.Walk{IDs: whole[cut:], From: from - cut}), append(of, i)
	}
	out := make([]Score, len(reqs))
	for i := range out {
		out[i].Greedy = true
	}
	return out, s.walk(ctx, walks, func(k, t int, logits []float32) (int32, bool) {
		id, o := walks[k].IDs[t], &out[of[k]]
		lp, best := logProb(logits, id)
		o.LogProb += lp
		o.Greedy = o.Greedy && best == id
		o.Tokens++
		return 0, false
	})
}

// LoglikelihoodRolling implements LM: every token is scored once, with as much context as its window holds; the last of
// several windows is a full one, as in the harness. Without a token to put before the text its first one is only
// context. Greedy is not set.
func (s *Subject) LoglikelihoodRolling(ctx context.Context, texts []string) ([]Score, error) {
	losses, err := s.Losses(ctx, texts)
	return rolled(losses), err
}

// rolled adds up the tokens of each text.
func rolled(losses [][]TokenLoss) []Score {
	out := make([]Score, len(losses))
	for i, list := range losses {
		for _, x := range list {
			out[i].LogProb -= x.Loss
			out[i].Tokens++
		}
	}
	return out
}

// lossRows bounds the rows of one pass, and therefore the memory of activations.
const lossRows = 8192

// Losses implements Tokenwise: texts in windows of the context, in batches of like length.
func (s *Subject) Losses(ctx context.Context, texts []string) ([][]TokenLoss, error) {
	type window struct {
		text, from, at int // the window begins at from; tokens after at are scored
		ids            []int32
	}
	n := s.Model.Config.Context
	out := make([][]TokenLoss, len(texts))
	var list []window
	for i, text := range texts {
		ids := s.Encode(text)
		for at := 0; at+1 < len(ids); at += n {
			end := min(at+n+1, len(ids))
			from := max(0, end-n-1)
			list = append(list, window{i, from, at, ids[from:end]})
			for t := at + 1; t < end; t++ {
				out[i] = append(out[i], TokenLoss{ID: ids[t], Position: t - from})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b window) int { return len(a.ids) - len(b.ids) })
	for len(list) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := 1 // as many as make lossRows with padding
		for n < min(s.batch(), len(list)) && (n+1)*len(list[n].ids) <= lossRows &&
			!(s.whole() && len(list[n].ids) != len(list[0].ids)) {
			n++
		}
		part := list[:n]
		list = list[n:]
		T := len(part[len(part)-1].ids) - 1
		b := model.Batch{B: len(part), T: T, IDs: make([]int32, len(part)*T),
			Targets: slices.Repeat([]int32{-1}, len(part)*T)}
		for i, w := range part { // padding comes after the tokens, where causal attention does not see it
			copy(b.IDs[i*T:], w.ids[:len(w.ids)-1])
			copy(b.Targets[i*T:], w.ids[1:])
		}
		if err := s.Model.Score(&b); err != nil {
			return nil, err
		}
		losses := make([]float32, len(part)*T)
		s.Model.Losses(losses)
		for i, w := range part {
			for t := w.at - w.from; t < len(w.ids)-1; t++ {
				out[w.text][w.from+t].Loss = float64(losses[i*T+t])
			}
		}
	}
	return out, nil
}

// GenerateUntil implements LM. If a prompt leaves no room in the context, its beginning is dropped.
func (s *Subject) GenerateUntil(ctx context.Context, reqs []Generation) ([]string, error) {
	if s.whole() {
		return s.generateWhole(ctx, reqs)
	}
	in := make([]infer.Request, len(reqs))
	longest := 1
	for i, r := range reqs {
		ids, most, err := s.fitted(r)
		if err != nil {
			return nil, fmt.Errorf("eval: request %d: %w", i, err)
		}
		in[i] = infer.Request{IDs: ids, Sampling: infer.Sampling{MaxTokens: most, Stop: r.Until}}
		longest = max(longest, len(ids)+most)
	}
	slots := min(s.batch(), len(reqs))
	cache := max(longest, min(slots*longest, infer.SharedBytes/s.Model.CacheBytes()))
	if s.shared != nil && s.shared.Bytes()+cache*s.Model.CacheBytes() > infer.SharedBytes {
		s.Close() // two caches of that size would use too much memory for long prompts
	}
	e, err := infer.New(s.Model, s.Tokenizer, infer.Options{Slots: slots, CacheTokens: cache, EOS: s.EOS})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	out := make([]string, len(reqs))
	err = e.Generate(ctx, in, func(i int, ev infer.Event) bool {
		out[i] += ev.Text
		return true
	})
	return out, err
}

// fitted is a prompt's ids and the most tokens that may follow; its beginning is dropped where both do not fit the
// context.
func (s *Subject) fitted(r Generation) (ids []int32, most int, err error) {
	context := s.Model.Config.Context
	ids, err = s.prompt(r.Prompt)
	most = min(r.MaxTokens, context-1)
	return ids[max(0, len(ids)+most-context):], most, err
}

// generateWhole is GenerateUntil with every sequence recomputed for each token.
func (s *Subject) generateWhole(ctx context.Context, reqs []Generation) ([]string, error) {
	walks, texts := make([]infer.Walk, len(reqs)), make([][]byte, len(reqs))
	for i, r := range reqs {
		ids, most, err := s.fitted(r)
		if err != nil {
			return nil, fmt.Errorf("eval: request %d: %w", i, err)
		}
		walks[i] = infer.Walk{IDs: ids, From: len(ids), Grow: most}
	}
	eos := s.EOS
	if id, ok := s.Tokenizer.EOS(); ok && len(eos) == 0 {
		eos = []int32{id}
	}
	err := s.walk(ctx, walks, func(i, t int, logits []float32) (int32, bool) {
		_, best := logProb(logits, 0)
		if slices.Contains(eos, best) || t >= len(walks[i].IDs)+walks[i].Grow {
			return 0, false
		}
		if !s.Tokenizer.Special(best) {
			texts[i] = append(texts[i], s.Tokenizer.TokenBytes(best)...)
		}
		return best, !slices.ContainsFunc(reqs[i].Until,
			func(stop string) bool { return strings.Contains(string(texts[i]), stop) })
	})
	out := make([]string, len(reqs))
	for i := range out {
		out[i] = string([]rune(string(texts[i]))) // invalid bytes become U+FFFD, as in the engine
		for _, stop := range reqs[i].Until {
			out[i], _, _ = strings.Cut(out[i], stop)
		}
	}
	return out, err
}
