package eval

import (
	"context"
	"fmt"

	"antiphase/infer"
	"antiphase/model"
	"antiphase/tokenizer"
)

// Subject is one of our own models under test. It is an LM, and it can be looked into.
type Subject struct {
	Name      string
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer
	Batch     int // sequences at a time; default 8
}

func (s *Subject) batch() int {
	if s.Batch > 0 {
		return s.Batch
	}
	return 8
}

// first is the token before every text: the one that separates documents in training.
func (s *Subject) first() (int32, bool) {
	if id, ok := s.Tokenizer.BOS(); ok {
		return id, true
	}
	return s.Tokenizer.EOS()
}

// encode gives a text's ids behind the first token.
func (s *Subject) encode(text string) []int32 {
	var ids []int32
	if id, ok := s.first(); ok {
		ids = append(ids, id)
	}
	return s.Tokenizer.EncodeOrdinary(ids, text)
}

// Loglikelihood implements LM. Context and continuation are encoded together and split at the context's length, as
// they would be in running text.
func (s *Subject) Loglikelihood(ctx context.Context, reqs []Continuation) ([]Score, error) {
	seqs := make([]scored, len(reqs))
	for i, r := range reqs {
		whole, from := s.encode(r.Context+r.Text), len(s.encode(r.Context))
		if from >= len(whole) {
			return nil, fmt.Errorf("eval: continuation %q of request %d has no tokens of its own", r.Text, i)
		}
		if from == 0 {
			return nil, fmt.Errorf("eval: request %d has no context, and the tokenizer no token to put in its place", i)
		}
		n := s.Model.Config.Context + 1
		if len(whole)-from >= n {
			return nil, fmt.Errorf("eval: continuation of request %d has %d tokens, the model's context is %d", i, len(whole)-from, n-1)
		}
		if cut := len(whole) - n; cut > 0 { // the context's end counts, not its beginning
			whole, from = whole[cut:], from-cut
		}
		seqs[i] = scored{ids: whole, from: from}
	}
	return s.score(ctx, seqs)
}

// LoglikelihoodRolling implements LM: every token is scored once, with as much context as its window holds. Without a
// token to put before the text its first one is only context.
func (s *Subject) LoglikelihoodRolling(ctx context.Context, texts []string) ([]Score, error) {
	out := make([]Score, len(texts))
	n := s.Model.Config.Context
	for i, text := range texts {
		ids := s.encode(text)
		var seqs []scored
		for at := 0; at+1 < len(ids); at += n {
			seqs = append(seqs, scored{ids: ids[at:min(at+n+1, len(ids))], from: 1})
		}
		parts, err := s.score(ctx, seqs)
		if err != nil {
			return nil, err
		}
		out[i].Greedy = true
		for _, p := range parts {
			out[i].LogProb += p.LogProb
			out[i].Tokens += p.Tokens
			out[i].Greedy = out[i].Greedy && p.Greedy
		}
	}
	return out, nil
}

// scored is a sequence whose tokens from index from on are to be scored.
type scored struct {
	ids  []int32
	from int
}

// score runs sequences in padded batches. Padding lies behind the tokens, where causal attention does not see it.
func (s *Subject) score(ctx context.Context, seqs []scored) ([]Score, error) {
	out := make([]Score, len(seqs))
	for at := 0; at < len(seqs); at += s.batch() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		part := seqs[at:min(at+s.batch(), len(seqs))]
		T := 0
		for _, q := range part {
			T = max(T, len(q.ids)-1)
		}
		b := model.Batch{B: len(part), T: T, IDs: make([]int32, len(part)*T)}
		for i, q := range part {
			copy(b.IDs[i*T:], q.ids[:len(q.ids)-1])
		}
		logits := make([]float32, len(b.IDs)*s.Model.Config.Vocab)
		if err := s.Model.Logits(&b, logits); err != nil {
			return nil, err
		}
		for i, q := range part {
			out[at+i] = scoreRows(q, logits[i*T*s.Model.Config.Vocab:], s.Model.Config.Vocab)
		}
	}
	return out, nil
}

// scoreRows sums log-probabilities over a sequence's scored tokens.
func scoreRows(q scored, logits []float32, vocab int) Score {
	r := Score{Greedy: true}
	for t := q.from; t < len(q.ids); t++ {
		row := logits[(t-1)*vocab : t*vocab]
		lp, best := logProb(row, q.ids[t])
		r.LogProb += lp
		r.Greedy = r.Greedy && best == q.ids[t]
		r.Tokens++
	}
	return r
}

// GenerateUntil implements LM.
func (s *Subject) GenerateUntil(ctx context.Context, reqs []Generation) ([]string, error) {
	e, err := infer.New(s.Model, s.Tokenizer, infer.Options{Slots: s.batch()})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	in := make([]infer.Request, len(reqs))
	for i, r := range reqs {
		in[i] = infer.Request{IDs: s.encode(r.Prompt), Sampling: infer.Sampling{MaxTokens: r.MaxTokens, Stop: r.Until}}
	}
	out := make([]string, len(reqs))
	err = e.Generate(ctx, in, func(i int, ev infer.Event) bool {
		out[i] += ev.Text
		return true
	})
	return out, err
}
