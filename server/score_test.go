package server

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/eval"
	"antiphase/model"
)

// The bodies that lm-evaluation-harness sends (lm_eval/models/openai_completions.py, commit 4e7e0d4), in the order in
// which it writes the fields.

func lmEvalScore(prompts [][]int32) fieldsOf {
	return fieldsOf{"model": "tiny", "prompt": prompts, "temperature": 0, "max_tokens": 1, "logprobs": 1,
		"seed": 1234, "echo": true}
}

func lmEvalGenerate(prompts [][]int32, until []string) fieldsOf {
	return fieldsOf{"prompt": prompts, "model": "tiny", "max_tokens": 16, "temperature": 0, "stop": until, "seed": 1234}
}

// lmEvalParse is the harness's parse_logprobs: the continuation's tokens lie between ctxlen and the one token that was
// generated.
func lmEvalParse(c completionChoice, ctxlen int) (sum float64, greedy bool) {
	n := len(c.Logprobs.Logprob)
	greedy = true
	for i := ctxlen; i < n-1; i++ {
		sum += *c.Logprobs.Logprob[i]
		best := math.Inf(-1)
		for _, x := range c.Logprobs.Top[i] {
			best = max(best, x)
		}
		greedy = greedy && *c.Logprobs.Logprob[i] == best
	}
	return sum, greedy
}

// nll scores ids through the model's training path, which shares no code with the engine.
func (r *rig) nll(ids []int32) []float64 {
	r.t.Helper()
	n := len(ids) - 1
	losses := make([]float32, n)
	err := r.model.Engine.Use(context.Background(), func(m *model.Model) error {
		if err := m.Score(&model.Batch{B: 1, T: n, IDs: ids[:n], Targets: ids[1:]}); err != nil {
			return err
		}
		m.Losses(losses)
		return m.Device().Sync()
	})
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]float64, n)
	for i, x := range losses {
		out[i] = float64(x)
	}
	return out
}

func randomIDs(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(r.IntN(256))
	}
	return ids
}

// TestEchoedLogprobsAreTheLoss: the sum of echoed log-probabilities is the loss that training would see, token by
// token.
func TestEchoedLogprobsAreTheLoss(t *testing.T) {
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		ids := randomIDs(rnd, 2+rnd.IntN(120))
		var reply completionReply
		r.post("/v1/completions", fieldsOf{"prompt": ids, "echo": true, "logprobs": 1, "max_tokens": 0}, &reply)
		lp := reply.Choices[0].Logprobs
		if len(lp.Logprob) != len(ids) || lp.Logprob[0] != nil || len(lp.Top[0]) != 0 || reply.Usage.Completion != 0 {
			t.Fatalf("%d ids: %d log-probabilities, the first %v, %d generated", len(ids), len(lp.Logprob),
				lp.Logprob[0], reply.Usage.Completion)
		}
		for i, want := range r.nll(ids) {
			if got := -*lp.Logprob[i+1]; !(math.Abs(got-want) <= 1e-5) {
				t.Fatalf("token %d of %d: loss %g through HTTP, %g offline", i+1, len(ids), got, want)
			}
		}
	}
}

// TestHarnessLoglikelihood replays the harness: 200 items of four endings each score as they do in process, to 1e-5,
// with the same choice.
func TestHarnessLoglikelihood(t *testing.T) {
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(5, 6))
	subject := &eval.Subject{Name: "tiny", Model: r.net, Tokenizer: r.model.Tokenizer, EOS: []int32{256}}
	defer subject.Close()
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abcdefgh ."[rnd.IntN(10)]
		}
		return string(b)
	}
	items := 200
	if testing.Short() {
		items = 40
	}
	for item := range items {
		ctx := "q" + letters(5+rnd.IntN(40)) + "x"
		var prompts [][]int32
		var lens []int
		var reqs []eval.Continuation
		for range 4 {
			end := " " + letters(3+rnd.IntN(20)) + "."
			reqs = append(reqs, eval.Continuation{Context: ctx, Text: end})
			prefix := append([]int32{256}, r.model.Tokenizer.Append(nil, ctx)...)
			prompts = append(prompts, append(prefix, r.model.Tokenizer.Append(nil, end)...))
			lens = append(lens, len(prefix))
		}
		want, err := subject.Loglikelihood(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		var reply completionReply
		r.post("/v1/completions", lmEvalScore(prompts), &reply)
		for i, c := range reply.Choices {
			sum, greedy := lmEvalParse(c, lens[i])
			if !(math.Abs(sum-want[i].LogProb) <= 1e-5) || greedy != want[i].Greedy {
				t.Fatalf("item %d, ending %d: %.9f %v through HTTP, %.9f %v in process", item, i, sum, greedy,
					want[i].LogProb, want[i].Greedy)
			}
		}
	}
	r.quiet()
}

// TestHarnessRolling: a text in one window, the first token from the prefix token, as loglikelihood_rolling asks for
// it.
func TestHarnessRolling(t *testing.T) {
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(7, 8))
	ids := append([]int32{256}, randomIDs(rnd, 100)...)
	var reply completionReply
	r.post("/v1/completions", lmEvalScore([][]int32{ids}), &reply)
	sum, _ := lmEvalParse(reply.Choices[0], 1)
	want := 0.0
	for _, x := range r.nll(ids) {
		want -= x
	}
	if !(math.Abs(sum-want) <= 1e-5*math.Abs(want)) {
		t.Errorf("%g through HTTP, %g offline", sum, want)
	}
	if n := len(reply.Choices[0].Logprobs.Tokens); n != len(ids)+1 {
		t.Errorf("%d entries, want one for each of the %d tokens and one generated", n, len(ids))
	}
}

// TestHarnessGenerate: greedy answers to a list of prompts, cut before the first stop string, choices in order.
func TestHarnessGenerate(t *testing.T) {
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(9, 10))
	prompts := [][]int32{randomIDs(rnd, 5), randomIDs(rnd, 30), randomIDs(rnd, 17)}
	var whole, cut completionReply
	r.post("/v1/completions", lmEvalGenerate(prompts, nil), &whole)
	for i, c := range whole.Choices {
		if c.Index != i || len(c.Text) == 0 {
			t.Fatalf("choice %d has index %d and text %q", i, c.Index, c.Text)
		}
		runes := []rune(c.Text)
		if len(runes) < 4 {
			continue
		}
		stop := string(runes[3:4])
		r.post("/v1/completions", lmEvalGenerate(prompts[i:i+1], []string{stop, "<|endoftext|>"}), &cut)
		got, at := cut.Choices[0].Text, 0
		for at < len(runes) && string(runes[at]) != stop {
			at++
		}
		if want := string(runes[:at]); got != want || *cut.Choices[0].Reason != "stop" {
			t.Errorf("stop at %q: %q, want %q", stop, got, want)
		}
	}
}
