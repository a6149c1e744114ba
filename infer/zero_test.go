package infer

import "testing"

// Id 0 is a token like any other, −1 is none: for the text, for the count that a session keeps, and in a whole call.
func TestTokenZero(t *testing.T) {
	tok := bytesTokenizer(t)
	for _, c := range []struct {
		id     int32
		reason string
		text   string
		given  int
	}{{0, "", "\x00", 1}, {0, ReasonLength, "\x00", 1}, {0, ReasonEOS, "", 1}, {-1, ReasonLength, "", 0},
		{1, "", "\x01", 1}} {
		o := &output{stream: tok.Stream(true), taken: []token{{id: c.id, reason: c.reason}}}
		calls := 0
		o.emit(func(ev Event) bool {
			calls++
			if ev.ID != c.id || ev.Text != c.text {
				t.Errorf("token %d, %q: %+v", c.id, c.reason, ev)
			}
			return true
		})
		if o.given != c.given || calls != 1 {
			t.Errorf("token %d, %q: %d events and %d tokens, want 1 and %d", c.id, c.reason, calls, o.given, c.given)
		}
	}
	e := engine(t, chain(t, newCPU(t), "a\x00b"), tok, Options{EOS: []int32{'b'}})
	s := e.NewSession()
	s.Append('a')
	if got := say(t, s, Sampling{MaxTokens: 1}); got.Text != "\x00" || len(s.Tokens()) != 2 {
		t.Errorf("%+v, tokens %v", got, s.Tokens())
	}
	if got := say(t, s, Sampling{}); got.Text != "" || got.Reason != ReasonEOS || len(s.Tokens()) != 3 {
		t.Errorf("then %+v, tokens %v", got, s.Tokens())
	}
	s.Close()
}

// Special tokens are no text, in prompts that are echoed and in answers.
func TestSpecialTokensAreNoText(t *testing.T) {
	e := engine(t, chain(t, newCPU(t), "ab"), bytesTokenizer(t), Options{})
	for _, c := range []struct {
		ids  []int32
		p    Sampling
		text string
	}{
		{[]int32{'a'}, Sampling{MaxTokens: 2, IgnoreEOS: true}, "b"},
		{[]int32{'a', 256, 'b'}, Sampling{MaxTokens: 1, IgnoreEOS: true, Echo: true}, "ab"},
	} {
		if got := generate(t, e, Request{IDs: c.ids, Sampling: c.p})[0]; got.Text != c.text ||
			got.IDs[len(got.IDs)-1] != 256 {
			t.Errorf("%v: %+v, want %q", c.ids, got, c.text)
		}
	}
}

// A minimum of tokens forbids the ends that the model has a logit for; an id beyond them is no fault.
func TestMinTokensBeyondTheVocabulary(t *testing.T) {
	logits := []float32{1, 2, 3}
	adjust(logits, &Sampling{MinTokens: 2}, &history{ends: []int32{3, 1, 900}, made: 1})
	if logits[0] != 1 || logits[2] != 3 || logits[1] > -1e38 {
		t.Errorf("%v, want only the second forbidden", logits)
	}
}
