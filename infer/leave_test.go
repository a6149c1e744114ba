package infer

import (
	"context"
	"errors"
	"testing"

	"antiphase/device"
	"antiphase/model"
	"antiphase/tensor"
)

// Every setting that changes logits, or asks for more than the most likely token, alone keeps a sequence from taking
// the device's choice; values that change nothing do not.
func TestWhatIsGreedy(t *testing.T) {
	for _, c := range []struct {
		s      Sampling
		greedy bool
	}{
		{Sampling{}, true},
		{Sampling{RepetitionPenalty: 1, TopK: 5, TopP: 0.5, MinP: 0.1, Seed: 3, MaxTokens: 4,
			Stop: []string{"x"}, StopIDs: []int32{1}, IgnoreEOS: true}, true},
		{Sampling{Temperature: 0.1}, false}, {Sampling{Logprobs: 1}, false}, {Sampling{Echo: true}, false},
		{Sampling{RepetitionPenalty: 1.1}, false}, {Sampling{RepetitionPenalty: 0.9}, false},
		{Sampling{PresencePenalty: 0.1}, false}, {Sampling{PresencePenalty: -0.1}, false},
		{Sampling{FrequencyPenalty: 0.1}, false}, {Sampling{FrequencyPenalty: -0.1}, false},
		{Sampling{Bias: []TokenBias{{1, 0}}}, false}, {Sampling{MinTokens: 1}, false},
		{Sampling{Constraint: new(completeAt)}, false},
	} {
		if s := (&seq{sampling: c.s}); s.greedy() != c.greedy {
			t.Errorf("%+v is greedy: %v", c.s, !c.greedy)
		}
	}
}

// A request that its owner or a stop string has ended takes no further rows, and its slot goes to the next one, while
// the others of its call go on.
func TestLeftRequestsTakeNoRows(t *testing.T) {
	tok := bytesTokenizer(t)
	for _, c := range []struct {
		name        string
		slots       int
		stop        []string
		steps, rows int
	}{
		// Two rows of the first, which leaves with its second token, and ten of the second.
		{"both run", 2, nil, 10, 2 + 10}, {"the second waits for the slot", 1, nil, 2 + 10, 2 + 10},
		{"a stop string", 2, []string{"c"}, 10, 2 + 10}, {"and one slot", 1, []string{"c"}, 2 + 10, 2 + 10},
	} {
		e := engine(t, chain(t, newCPU(t), "abcdefghijklmnopqrstuvwxyz"), tok, Options{Slots: c.slots})
		reqs := []Request{{IDs: []int32{'a'}, Sampling: Sampling{MaxTokens: 20, Stop: c.stop}},
			{IDs: []int32{'g'}, Sampling: Sampling{MaxTokens: 10}}}
		tokens := [2]int{}
		err := e.Generate(t.Context(), reqs, func(i int, ev Event) bool {
			tokens[i]++
			return c.stop != nil || i == 1 || tokens[0] < 2
		})
		s := e.Stats()
		if err != nil || tokens != [2]int{2, 10} || s.Steps != c.steps || s.Rows != c.rows {
			t.Errorf("%s: %v tokens in %d steps of %d rows, want %d of %d, %v", c.name, tokens, s.Steps, s.Rows,
				c.steps, c.rows, err)
		}
		drained(t, e)
	}
}

// Whoever gives up while a step runs does not get the model, and leaves nothing behind.
func TestGivingUpATurn(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("gone")
	cancel(why)
	stepping := func(on bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stepping = on
	}
	stepping(true)
	for name, err := range map[string]error{
		"Use":    e.Use(ctx, func(*model.Model) error { t.Error("Use runs"); return nil }),
		"Beside": e.Beside(ctx, func(*model.Model, func()) error { t.Error("Beside runs"); return nil }),
	} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stepping(false)
	if e.claims != 0 || e.beside != 0 || len(e.aside) != 1 {
		t.Errorf("%d claims, %d calls, %d turns are left", e.claims, e.beside, len(e.aside))
	}
	generate(t, e, Request{IDs: []int32{1}, Sampling: Sampling{MaxTokens: 3}})
	drained(t, e)
}

// allocating counts a device's memory.
type allocating struct {
	device.Device
	held int // pieces
	made int // bytes of all pieces so far
}

func (d *allocating) Alloc(bytes int) *tensor.Buffer {
	d.held++
	d.made += bytes
	return d.Device.Alloc(bytes)
}

func (d *allocating) Free(b *tensor.Buffer) { d.held--; d.Device.Free(b) }

// An engine that has committed its memory takes only tables of rows later, whatever its requests; in a step, prompts of
// several sequences fill the chunk beside the single tokens of others. A closed engine holds nothing, not even for work
// beside it.
func TestMemoryOfAnEngine(t *testing.T) {
	d := &allocating{Device: newCPU(t)}
	for _, c := range []struct{ slots, chunk, prompts int }{{2, 32, 3}, {40, 2000, 40}, {8, 100, 20}} {
		m := tiny(t, d, "diff")
		opt := Options{Slots: c.slots, PrefillChunk: c.chunk, Commit: true}
		e := engine(t, m, nil, opt)
		made := d.made
		var reqs []Request
		for i := range c.prompts {
			reqs = append(reqs, Request{IDs: make([]int32, 50+i%14), Sampling: Sampling{Echo: i%2 == 0, MaxTokens: 3}})
		}
		generate(t, e, reqs...)
		if made = d.made - made; made > 4096 {
			t.Errorf("%+v: %d bytes after all was committed", c, made)
		}
		held := d.held
		opt.Commit = false
		more, err := New(m, nil, opt)
		if err != nil {
			t.Fatal(err)
		}
		generate(t, more, reqs...)
		b := &model.Batch{B: 1, T: 30, IDs: make([]int32, 30)}
		if err := more.Beside(t.Context(),
			func(twin *model.Model, rest func()) error {
				return twin.Hidden(b, rest,
					make([]float32, 30*16))
			}); err != nil {
			t.Error(err)
		}
		if more.Close(); d.held != held {
			t.Errorf("%+v: %d pieces of memory are held after the end, %d before", c, d.held, held)
		}
	}
}

// Logits of echoed prompts are bounded by rows of their own: fewer than a chunk where the vocabulary is large. Other
// prompts still fill the chunk.
func TestRowsOfEchoes(t *testing.T) {
	m := tiny(t, newCPU(t), "diff")
	for _, c := range []struct {
		echo        []bool
		steps, most int // most: of the logits read in a step
	}{
		{[]bool{true}, 4, 3}, {[]bool{false}, 1, 1}, {[]bool{true, true}, 7, 3}, {[]bool{false, true}, 5, 3},
		{[]bool{true, false}, 4, 3},
	} {
		e := engine(t, m, nil, Options{PrefillChunk: 10, Slots: 4})
		e.pass.echoRows = 3
		var reqs []Request
		for _, echo := range c.echo {
			reqs = append(reqs, Request{IDs: make([]int32, 10),
				Sampling: Sampling{Echo: echo, MaxTokens: 1, IgnoreEOS: true}})
		}
		most := 0
		if err := e.Generate(t.Context(), reqs,
			func(int, Event) bool { most = max(most, len(e.pass.rows.Want)); return true }); err != nil {
			t.Fatal(err)
		}
		if s := e.Stats(); s.Steps != c.steps || most > c.most+1 || s.Rows != 10*len(reqs) {
			t.Errorf("%v: %d steps of %d rows, at most %d logits; want %d steps and at most %d logits", c.echo, s.Steps,
				s.Rows, most, c.steps, c.most+1)
		}
	}
}
