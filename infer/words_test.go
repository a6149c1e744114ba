package infer

import (
	"errors"
	"math"
	"slices"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
)

// Every refusal of a setting, in the words that a user reads.
func TestSettingWords(t *testing.T) {
	for _, c := range []struct {
		s    Sampling
		want string
	}{
		{Sampling{Temperature: -1}, "temperature: is -1, must be finite and not negative"},
		{Sampling{TopP: 1.5}, "top_p: is 1.5, must be between 0 and 1 (0 turns it off)"},
		{Sampling{MinP: -0.5}, "min_p: is -0.5, must be between 0 and 1 (0 turns it off)"},
		{Sampling{RepetitionPenalty: math.NaN()}, "repetition_penalty: is NaN, must be finite and not negative"},
		{Sampling{TopK: -2}, "top_k: is -2, must not be negative"},
		{Sampling{MaxTokens: -3}, "max_tokens: is -3, must not be negative"},
		{Sampling{Logprobs: -4}, "logprobs: is -4, must not be negative"},
		{Sampling{Stop: []string{"a", ""}}, `stop: entry 1 is "", must be non-empty UTF-8 text`},
		{Sampling{StopIDs: []int32{3, -1}}, "stop_token_ids: entry 1 is -1, must not be negative"},
		{Sampling{PresencePenalty: 101}, "presence_penalty: is 101, must be between -100 and 100"},
		{Sampling{FrequencyPenalty: -101}, "frequency_penalty: is -101, must be between -100 and 100"},
		{Sampling{MinTokens: -5}, "min_tokens: is -5, must not be negative"},
		{Sampling{Bias: []TokenBias{{ID: 3}, {ID: 10}}}, "logit_bias: token id 10 is outside the vocabulary of 10"},
		{Sampling{Bias: []TokenBias{{ID: 3, Bias: 2e6}}},
			"logit_bias: the bias of token 3 is 2e+06, must be a finite number of ordinary size"},
	} {
		if err := errors.Join(c.s.Check(), c.s.checkAdjust(10)); err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	m := tiny(t, ref.New(), "diff")
	for want, o := range map[string]Options{
		"infer: slots: is -1, must be between 1 and 1048576 (0 takes the default, 8)":           {Slots: -1},
		"infer: page_size: is 1048577, must be between 1 and 1048576 (0 takes the default, 16)": {PageSize: 1<<20 + 1},
	} {
		if _, err := New(m, nil, o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// How many tokens there are, by what is smaller: the length that was asked for, the context, or the cache.
func TestLengthsByHand(t *testing.T) {
	m := tiny(t, newCPU(t), "diff") // a context of 64
	for _, c := range []struct{ cache, prompt, most, want int }{
		{64, 10, 0, 54}, {64, 10, 3, 3}, {64, 10, 54, 54}, {64, 10, 99, 54}, {64, 63, 5, 1}, {64, 64, 5, 0},
		{16, 10, 0, 6}, {16, 10, 6, 6}, {16, 15, 0, 1}, {16, 16, 0, 0}, {128, 10, 0, 54},
	} {
		e := engine(t, m, nil, Options{CacheTokens: c.cache, PageSize: 8, Slots: 1})
		got := generate(t, e, Request{IDs: make([]int32, c.prompt),
			Sampling: Sampling{MaxTokens: c.most, IgnoreEOS: true}})[0]
		if len(got.IDs) != c.want || got.Reason != ReasonLength {
			t.Errorf("%+v: %d tokens because of %q", c, len(got.IDs), got.Reason)
		}
	}
}

// How many rows of a prompt are scored in a step: its chunk, but no more logits than four million numbers.
func TestEchoRows(t *testing.T) {
	for _, c := range []struct{ vocab, chunk, want int }{{50, 8, 8}, {1 << 18, 8, 8}, {1 << 18, 99, 16},
		{1<<18 + 1, 99, 15}} {
		cfg, err := model.Config{Arch: "transformer", Vocab: c.vocab, Context: 32, Layers: 1, Dim: 2, Heads: 1,
			HeadDim: 2}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.New(ref.New(), cfg, layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		if e := engine(t, m, nil, Options{Slots: 1, PrefillChunk: c.chunk}); e.pass.echoRows != c.want {
			t.Errorf("%+v: %d rows", c, e.pass.echoRows)
		}
	}
}

// Sequences whose owners have left go before the next step, from the batch and from the queue, whoever they are; others
// keep their order, slots are free again, and a session rests with its pages.
func TestReap(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 3, PageSize: 4, CacheTokens: 64})
	for leave := range 1 << 7 {
		c := &scheduler{}
		c.init(3, &e.store, &Stats{})
		list := make([]*seq, 7)
		for i := range list {
			list[i] = &seq{tokens: []int32{1, 2, 3, 4, 5}, end: 8, keep: i == 0}
			c.enqueue(list[i])
		}
		c.admit() // three
		var runs, waits, rests []*seq
		for i, s := range list {
			s.leave = leave>>i&1 == 1
			switch {
			case i < 3 && !c.grow(s, 5):
				t.Fatal("no pages")
			case i == 0 && s.leave:
				rests = append(rests, s)
			case i < 3 && !s.leave:
				runs = append(runs, s)
			case !s.leave:
				waits = append(waits, s)
			}
		}
		c.reap()
		if !slices.Equal(c.batch, runs) || !slices.Equal(c.queue, waits) || !slices.Equal(c.resting, rests) {
			t.Errorf("%07b leave: %d run, %d wait, %d rest", leave, len(c.batch), len(c.queue), len(c.resting))
		}
		if len(c.slots) != 3-len(runs) || e.store.pool.available() != 16-2*len(runs)-2*len(rests) {
			t.Errorf("%07b leave: %d slots and %d pages are free", leave, len(c.slots), e.store.pool.available())
		}
		slots := map[int32]bool{}
		c.admit()
		for _, s := range c.batch {
			slots[s.slot] = true
		}
		if stay := append(runs, waits...); !slices.Equal(c.batch, stay[:min(3, len(stay))]) ||
			len(slots) != len(c.batch) {
			t.Errorf("%07b leave: then %d run in %d slots", leave, len(c.batch), len(slots))
		}
		for i, s := range list {
			if want := map[bool]state{true: running, false: waiting}[slices.Contains(c.batch, s)]; s.leave &&
				s.state != idle || !s.leave && s.state != want {
				t.Errorf("%07b leave: sequence %d is in state %d", leave, i, s.state)
			}
			e.store.drop(s)
		}
	}
}
