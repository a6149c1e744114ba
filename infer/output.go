package infer

import "antiphase/tokenizer"

// Reasons why a request ended.
const (
	ReasonStop      = "stop"      // a stop string or stop id
	ReasonLength    = "length"    // MaxTokens, or the end of the context
	ReasonEOS       = "eos"       // the model ended the text
	ReasonComplete  = "complete"  // the constraint allows nothing further
	ReasonCancelled = "cancelled" // the context was cancelled
	ReasonError     = "error"     // see the call's error
)

// Event is one generated token, or the end of a request without one. Top is valid until emit returns.
type Event struct {
	ID      int32  // the token; −1 if there is none
	Prompt  bool   // it is a prompt token, see Sampling.Echo; the first of these has no log-probability
	Text    string // text that is now certain: whole characters, and nothing that could be part of a stop string
	Offset  int    // bytes of text before this token, including text held back
	Cached  int    // prompt tokens that were already in the cache
	Logprob float64
	Top     []TokenLogprob // the most likely tokens, best first, if requested
	Done    bool           // the request's last event
	Reason  string         // why, when Done
	Cut     bool           // a stop string was found: tokens at offsets beyond the text are not part of it
}

// output turns one request's tokens into events. It belongs to the calling goroutine.
type output struct {
	seq    *seq
	stream *tokenizer.Stream // nil without a tokenizer
	stop   stopper
	closed bool // its last event was emitted
	given  int  // tokens that have become events
	cached int  // length of the sequence's prefix hit
	raw    int  // bytes of text so far, including text held back
	err    error

	taken []token // taken from seq under the lock, then processed without it
	tops  []TokenLogprob
}

// newOutput prepares for the tokens after those of s. The stream decodes the existing ones first, so that the text
// continues as in the whole: a word's leading space is kept only after another word. An echo does that by itself.
func (e *Engine) newOutput(s *seq) *output {
	o := &output{seq: s, stop: stopper{stops: s.sampling.Stop}}
	if e.tok != nil {
		o.stream = e.tok.Stream(true)
		for i := 0; i < len(s.tokens) && !s.sampling.Echo; i++ {
			o.stream.Push(s.tokens[i])
		}
	}
	return o
}

// take moves the published tokens over, and reports whether there are any. The engine's lock is held.
func (o *output) take() bool {
	if o.closed || len(o.seq.out) == 0 {
		return false
	}
	o.taken, o.seq.out = o.seq.out, o.taken[:0]
	o.tops, o.seq.outTop = o.seq.outTop, o.tops[:0]
	o.cached = o.seq.hit
	return true
}

// emit passes the taken tokens to f one by one until f returns false or the request ends.
func (o *output) emit(f func(Event) bool) {
	tops := o.tops
	for i := range o.taken {
		if o.closed {
			break
		}
		t := &o.taken[i]
		ev := o.event(t)
		ev.Top, tops = tops[:t.tops:t.tops], tops[t.tops:]
		if t.id >= 0 && !t.prompt {
			o.given++
		}
		o.closed = ev.Done
		if !f(ev) {
			o.closed = true
		}
	}
	o.taken = o.taken[:0]
}

// event turns a token into an event. A token that ends a text by its id has no text.
func (o *output) event(t *token) Event {
	ev := Event{ID: t.id, Prompt: t.prompt, Logprob: t.logprob, Reason: t.reason, Done: t.reason != "", Offset: o.raw,
		Cached: o.cached}
	if t.err != nil {
		o.err = t.err
	}
	if o.stream == nil {
		return ev
	}
	if t.prompt { // stop strings apply to answers only
		ev.Text = o.stream.Push(t.id)
		o.raw += len(ev.Text)
		return ev
	}
	piece := ""
	if t.id >= 0 && (t.reason == "" || t.reason == ReasonLength || t.reason == ReasonComplete) {
		piece = o.stream.Push(t.id)
	}
	if ev.Done {
		piece += o.stream.Flush()
	}
	o.raw += len(piece)
	var hit bool
	ev.Text, hit = o.stop.add(piece)
	switch {
	case hit:
		ev.Done, ev.Reason, ev.Cut = true, ReasonStop, true
	case ev.Done:
		ev.Text += o.stop.flush()
	}
	return ev
}
