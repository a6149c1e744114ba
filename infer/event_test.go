package infer

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// What an event says for every reason a token can end a request with: the text of a token that is part of the answer,
// and none of one that ends it by its id; held-back text comes with the last event.
func TestEventOfEveryReason(t *testing.T) {
	tok := bytesTokenizer(t)
	ids := tok.EncodeOrdinary(nil, "aé")
	lost := errors.New("lost")
	for reason, last := range map[string]string{"": "", ReasonLength: "b", ReasonComplete: "b", ReasonEOS: "",
		ReasonStop: "", ReasonCancelled: "", ReasonError: ""} {
		o := &output{stream: tok.Stream(true), stop: stopper{stops: []string{"axxx"}}, cached: 3}
		if ev := o.event(&token{id: ids[0], prompt: true}); ev.Text != "a" || !ev.Prompt || ev.Offset != 0 ||
			ev.Cached != 3 || ev.Done {
			t.Errorf("a prompt's token: %+v", ev) // stop strings begin after it
		}
		if ev := o.event(&token{id: ids[0]}); ev.Text != "" || ev.Offset != 1 || ev.Done || ev.Prompt {
			t.Errorf("what may begin a stop string: %+v", ev)
		}
		if ev := o.event(&token{id: ids[1]}); ev.Text != "" || ev.Offset != 2 {
			t.Errorf("half a character: %+v", ev)
		}
		if ev := o.event(&token{id: ids[2], logprob: -2}); ev.Text != "aé" || ev.Offset != 2 || ev.Logprob != -2 {
			t.Errorf("its other half: %+v", ev)
		}
		if o.event(&token{id: ids[0]}); reason == "" {
			continue
		}
		ev := o.event(&token{id: tok.EncodeOrdinary(nil, "b")[0], reason: reason, err: lost})
		if ev.Text != "a"+last || !ev.Done || ev.Reason != reason || ev.Cut || ev.Offset != 5 ||
			!errors.Is(o.err, lost) {
			t.Errorf("%s: %+v, %v", reason, ev, o.err)
		}
	}
	for _, reason := range []string{"", ReasonLength, ReasonComplete} { // a stop string that the last token completes
		o := &output{stream: tok.Stream(true), stop: stopper{stops: []string{"ab"}}}
		o.event(&token{id: ids[0]})
		if ev := o.event(&token{id: tok.EncodeOrdinary(nil, "b")[0], reason: reason}); ev.Text != "" || !ev.Done ||
			!ev.Cut || ev.Reason != ReasonStop {
			t.Errorf("%q: %+v", reason, ev)
		}
	}
	o := &output{}
	if ev := o.event(&token{id: 7, reason: ReasonEOS, logprob: -1}); ev.ID != 7 || ev.Text != "" || !ev.Done ||
		ev.Reason != ReasonEOS || ev.Logprob != -1 {
		t.Errorf("without a tokenizer: %+v", ev)
	}
}

// Tokens are passed on with their own lists, counted unless they are the prompt's, and none after the last or after the
// caller has had enough.
func TestEmit(t *testing.T) {
	top := func(ids ...int32) (list []TokenLogprob) {
		for _, id := range ids {
			list = append(list, TokenLogprob{ID: id})
		}
		return list
	}
	for enough := 1; enough <= 6; enough++ {
		o := &output{taken: []token{{id: 1, prompt: true}, {id: 2, prompt: true, tops: 1}, {id: 3, tops: 2}, {id: 4},
			{id: -1, reason: ReasonLength}, {id: 5}}, tops: top(20, 30, 31)}
		var ids []int32
		var tops [][]int32
		o.emit(func(ev Event) bool {
			ids = append(ids, ev.ID)
			var list []int32
			for _, x := range ev.Top {
				list = append(list, x.ID)
			}
			tops = append(tops, list)
			return len(ids) < enough
		})
		n := min(enough, 5) // the fifth is the last
		want, lists := []int32{1, 2, 3, 4, -1}[:n], [][]int32{nil, {20}, {30, 31}, nil, nil}[:n]
		if !slices.Equal(ids, want) || !slices.EqualFunc(tops, lists, slices.Equal[[]int32]) || !o.closed ||
			o.given != []int{0, 0, 1, 2, 2}[n-1] || len(o.taken) != 0 {
			t.Errorf("enough at %d: %v with %v, %d given, closed %v", enough, ids, tops, o.given, o.closed)
		}
	}
}

// After any turn a session holds its prompt and what was emitted, nothing more: after an echo, a stop, a caller that
// had enough, and a turn that was refused.
func TestSessionHoldsWhatWasEmitted(t *testing.T) {
	tok := bytesTokenizer(t)
	e := engine(t, chain(t, newCPU(t), "abcdefgh"), tok, Options{PageSize: 4})
	for name, c := range map[string]struct {
		p      Sampling
		enough int
	}{
		"plain": {Sampling{MaxTokens: 3}, 99}, "echo": {Sampling{MaxTokens: 3, Echo: true, Logprobs: 1}, 99},
		"echo only": {Sampling{Echo: true, ScoreOnly: true}, 99},
		"stop":      {Sampling{MaxTokens: 5, Stop: []string{"de"}}, 99}, "enough": {Sampling{MaxTokens: 5}, 2},
		"enough of the echo": {Sampling{MaxTokens: 5, Echo: true}, 1},
		"refused":            {Sampling{MaxTokens: -1}, 99},
	} {
		s := e.NewSession()
		prompt := tok.EncodeOrdinary(nil, "ab")
		s.Append(prompt...)
		want := slices.Clone(prompt)
		events := 0
		err := s.Generate(context.Background(), c.p, func(ev Event) bool {
			if ev.ID >= 0 && !ev.Prompt {
				want = append(want, ev.ID)
			}
			events++
			return events < c.enough
		})
		if (err != nil) != (name == "refused") || !slices.Equal(s.Tokens(), want) {
			t.Errorf("%s: holds %v, want %v; %v", name, s.Tokens(), want, err)
		}
		if again := say(t, s, Sampling{MaxTokens: 1}); len(again.IDs) != 1 ||
			!slices.Equal(s.Tokens(), append(want, again.IDs...)) {
			t.Errorf("%s: goes on as %v", name, s.Tokens())
		}
		s.Close()
	}
}
