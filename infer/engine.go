package infer

import (
	"fmt"
	"sync"

	"antiphase/model"
	"antiphase/tokenizer"
)

// Options size an engine. Zero fields use their defaults.
type Options struct {
	Slots        int     // sequences in one batch; default 8
	CacheTokens  int     // positions in the KV cache, rounded up to whole pages; default Slots contexts
	PageSize     int     // positions per page; default 16
	PrefillChunk int     // prompt tokens per step, of all prompts; default by the device, see model.PromptRows
	EOS          []int32 // ids that end a text; default the tokenizer's end-of-text token
	// Commit allocates the memory of full load at once: every page of the cache, and the activations and logits of the
	// largest step, which is run for that. Without it memory is allocated on first use.
	Commit bool
	// Lock is held while the device computes. A device serves one goroutine at a time, so engines on one device share a
	// lock.
	Lock sync.Locker
}

// complete fills in the defaults and reports values out of range.
func (o Options) complete(m *model.Model) (Options, error) {
	for _, f := range []struct {
		name string
		v    *int
		def  int
	}{{"slots", &o.Slots, 8}, {"page_size", &o.PageSize, 16}, {"prefill_chunk", &o.PrefillChunk, m.PromptRows()}} {
		if *f.v == 0 {
			*f.v = f.def
		}
		if *f.v < 0 || *f.v > 1<<20 {
			return o, &FieldError{f.name, fmt.Sprintf("is %d, must be between 1 and %d (0 takes the default, %d)", *f.v,
				1<<20, f.def)}
		}
	}
	if o.Lock == nil {
		o.Lock = &sync.Mutex{}
	}
	if o.CacheTokens == 0 {
		o.CacheTokens = o.Slots * m.Config.Context
	}
	if o.CacheTokens < 0 || o.CacheTokens > 1<<31-1-o.PageSize { // devices index cache rows with int32
		return o, &FieldError{"cache_tokens",
			fmt.Sprintf("is %d, must be between 1 and %d", o.CacheTokens, 1<<31-1-o.PageSize)}
	}
	return o, nil
}

// Engine generates tokens for many sequences in shared batches. It is safe for concurrent use; the model must not be
// used otherwise during a call.
type Engine struct {
	model *model.Model
	tok   *tokenizer.Tokenizer
	opt   Options
	eos   []int32

	mu       sync.Mutex // protects what follows, except pass
	turn     sync.Cond  // a step has ended
	stepping bool       // a step is computing, without the lock
	sched    scheduler
	store    store
	pass     pass // used by the goroutine that runs the step
	stats    Stats
	beside   int // turns of Use and Beside: no step is started ahead
	claims   int // turns that wait; they come before the next step

	aside chan struct{} // holds a token unless a call is in Beside
	twin  *model.Model  // for Beside; nil until it is used
}

// Stats describes an engine's load.
type Stats struct {
	Running, Waiting int // sequences in the batch and in the queue
	Pages, FreePages int
	Steps            int // batches computed
	Rows             int // tokens computed, prompt and generated
	Preempted        int // times a sequence lost its pages to an older one and was requeued
	Evicted          int // times an idle session lost its pages
	Hits             int // prompt tokens found in the cache
}

// New makes an engine over a model. tok may be nil: then events have ids and no text.
func New(m *model.Model, tok *tokenizer.Tokenizer, opt Options) (*Engine, error) {
	c := m.Config
	opt, err := opt.complete(m)
	if err != nil {
		return nil, fmt.Errorf("infer: %w", err)
	}
	if tok != nil && tok.Vocab() > c.Vocab {
		return nil, fmt.Errorf(
			"infer: the tokenizer has %d ids and the model a vocabulary of %d: they do not belong together",
			tok.Vocab(), c.Vocab)
	}
	e := &Engine{model: m, tok: tok, opt: opt, eos: opt.EOS, aside: make(chan struct{}, 1)}
	e.aside <- struct{}{}
	e.turn.L = &e.mu
	if tok != nil && e.eos == nil {
		if id, ok := tok.EOS(); ok {
			e.eos = []int32{id}
		}
	}
	e.store.init(m, &opt, &e.stats)
	e.sched.init(opt.Slots, &e.store, &e.stats)
	e.pass.init(e)
	if opt.Commit {
		if err := commit(e); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// Close releases the engine's memory. No call may be in progress or follow.
func (e *Engine) Close() {
	if e.twin != nil {
		e.twin.Free()
	}
	e.store.cache.Free()
}

// Stats returns the current load.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Running, s.Waiting = len(e.sched.batch), len(e.sched.queue)
	s.Pages, s.FreePages = e.store.pool.total, e.store.pool.available()
	return s
}

// Slots is the number of sequences in one batch.
func (e *Engine) Slots() int { return e.opt.Slots }

// EOS are the ids that end a text.
func (e *Engine) EOS() []int32 { return e.eos }
