package infer

import (
	"fmt"
	"slices"

	"antiphase/model"
)

// pass is the step being computed: its rows, what is read back from the device and the tokens chosen from it. The
// goroutine that runs the step uses it.
type pass struct {
	model *model.Model
	sched *scheduler
	store *store
	stats *Stats
	eos   []int32
	vocab int

	chunk     int // maximum prompt tokens
	echoRows  int // maximum prompt logits, which bounds their memory
	aheadRows int // largest batch that can be decoded ahead

	rows    model.Rows
	logits  []float32
	best    []int32 // most likely tokens, if greedy
	greedy  bool    // no sequence of the step needs more
	further bool    // the next step is started before this one's tokens are seen
	sampler sampler
}

// init allocates what a step needs.
func (p *pass) init(e *Engine) {
	vocab, slots := e.model.Config.Vocab, e.opt.Slots
	*p = pass{model: e.model, sched: &e.sched, store: &e.store, stats: &e.stats, eos: e.eos, vocab: vocab,
		chunk: e.opt.PrefillChunk, sampler: newSampler(vocab)}
	p.echoRows = max(1, min(p.chunk, 1<<22/vocab))
	p.aheadRows = e.store.cache.Ahead()
	n := slots + p.chunk
	p.rows = model.Rows{IDs: make([]int32, 0, n), Slots: make([]int32, 0, n), Pos: make([]int32, 0, n),
		Want: make([]int32, 0, slots)}
	p.logits, p.best = make([]float32, slots*vocab), make([]int32, slots)
}

// run is the model's part. If every sequence needs only its most likely token, only those are copied to the host.
func (p *pass) run() error {
	if !p.underWay() {
		if err := p.store.cache.Run(p.rows); err != nil {
			return err
		}
	}
	if err := p.read(); err != nil || p.further { // a step in flight is not waited for
		return err
	}
	return p.model.Device().Sync()
}

// read fetches the step's best tokens, or its logits.
func (p *pass) read() error {
	n := len(p.rows.Want)
	if p.greedy = n <= len(p.best) &&
		!slices.ContainsFunc(p.sched.batch, func(s *seq) bool { return !s.greedy() }); p.greedy {
		if err := p.readBest(p.best[:n]); err != nil {
			return err
		}
		// Where no id is the best, the logits show what is wrong.
		if p.greedy = p.further || !slices.Contains(p.best[:n], -1); p.greedy {
			return nil
		}
	}
	if len(p.logits) < n*p.vocab { // an echo needs more rows than there are slots
		p.logits = make([]float32, n*p.vocab)
	}
	return p.store.cache.ReadLogits(p.logits[:n*p.vocab])
}

// sample turns the logits into tokens. A row that is not a distribution, or a constraint that panics, fails only its
// own sequence.
func (p *pass) sample() {
	for _, s := range p.sched.batch {
		s.fresh, s.freshTop = s.fresh[:0], s.freshTop[:0]
		if err := p.guarded(s); err != nil {
			err = fmt.Errorf("infer: step %d, after %d tokens: %w", p.stats.Steps, len(s.tokens), err)
			s.fresh = append(s.fresh, token{id: -1, reason: ReasonError, err: err})
		}
	}
}

// guarded is tokens with a panic turned into an error, because any caller's goroutine may run the step.
func (p *pass) guarded(s *seq) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return p.tokens(s)
}

// tokens scores the requested prompt tokens and samples the next one if the last row was in the step.
func (p *pass) tokens(s *seq) (err error) {
	if p.greedy {
		if !s.last {
			return nil
		}
		if p.best[s.want] < 0 {
			return errNoNumbers
		}
		p.give(s, token{id: p.best[s.want]})
		return nil
	}
	row := p.logits[s.want*p.vocab:]
	for range s.echo {
		s.scored++
		t := token{id: s.tokens[s.scored], prompt: true}
		had := len(s.freshTop)
		if t.logprob, s.freshTop, err = p.sampler.score(row[:p.vocab], t.id, s.sampling.Logprobs,
			s.freshTop); err != nil {
			return err
		}
		t.tops = len(s.freshTop) - had
		s.fresh = append(s.fresh, t)
		row = row[p.vocab:]
	}
	if !s.last {
		return nil
	}
	if len(s.tokens) == s.end { // an echo without room for an answer
		s.fresh = append(s.fresh, token{id: -1, reason: ReasonLength})
		return nil
	}
	var t token
	had := len(s.freshTop)
	if t.id, t.logprob, s.freshTop, err = p.sampler.next(row[:p.vocab], &s.sampling, &s.hist, s.freshTop); err != nil {
		return err
	}
	t.tops = len(s.freshTop) - had
	p.give(s, t)
	return nil
}

// give makes t the next token of s.
func (p *pass) give(s *seq, t token) {
	t.reason = p.accept(s, t.id)
	s.fresh = append(s.fresh, t)
}

// accept appends a sampled token and returns why it is the last, if it is.
func (p *pass) accept(s *seq, id int32) (reason string) {
	s.tokens = append(s.tokens, id)
	s.hist.took(id)
	c := s.sampling.Constraint
	switch {
	case slices.Contains(s.sampling.StopIDs, id):
		return ReasonStop
	case !s.sampling.IgnoreEOS && slices.Contains(p.eos, id):
		return ReasonEOS
	case c != nil && c.Accept(id):
		return ReasonComplete
	case len(s.tokens) >= s.end:
		return ReasonLength
	}
	return ""
}
