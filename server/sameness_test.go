package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answer is what must not depend on company, cache or transport.
type answer struct {
	Text     string
	Reason   string
	Tokens   []string
	Logprobs []float64
	Tops     []map[string]float64
}

// randomRequest draws a completion over a few common beginnings, so that prefixes are found.
func randomRequest(r *rand.Rand, trunks [][]int32) fieldsOf {
	t := trunks[r.IntN(len(trunks))]
	ids := append([]int32(nil), t[:1+r.IntN(len(t))]...)
	ids = append(ids, randomIDs(r, r.IntN(20))...)
	q := fieldsOf{"prompt": ids, "max_tokens": 1 + r.IntN(20), "seed": r.Int32(), "logprobs": r.IntN(4),
		"echo": r.IntN(10) == 0}
	switch r.IntN(5) {
	case 0:
		q["temperature"] = 0
	case 1:
		q["temperature"], q["top_p"] = 0.7, 0.9
	case 2:
		q["temperature"], q["top_k"], q["repetition_penalty"] = 1.3, 20, 1.2
	case 3:
		q["presence_penalty"], q["frequency_penalty"], q["logit_bias"] = 1.1, 0.3, fieldsOf{"65": 5, "256": -100}
	}
	if r.IntN(3) == 0 {
		q["stop"] = []string{string(rune('a' + r.IntN(26))), string(rune('A' + r.IntN(26)))}
	}
	return q
}

// ask sends a request whole and gives its only choice.
func (r *rig) ask(q fieldsOf) answer {
	var reply completionReply
	status, _, b := r.do("POST", "/v1/completions", q)
	if status != 200 {
		r.t.Errorf("%v: %d %s", q, status, b)
		return answer{}
	}
	if err := json.Unmarshal(b, &reply); err != nil {
		r.t.Error(err)
		return answer{}
	}
	var a answer
	a.take(reply.Choices[0])
	return a
}

func (a *answer) take(c completionChoice) {
	a.Text += c.Text
	if c.Reason != nil {
		a.Reason = *c.Reason
	}
	if c.Logprobs == nil {
		return
	}
	a.Tokens = append(a.Tokens, c.Logprobs.Tokens...)
	a.Tops = append(a.Tops, c.Logprobs.Top...)
	for _, x := range c.Logprobs.Logprob {
		if x == nil {
			a.Logprobs = append(a.Logprobs, 1) // no probability is positive
		} else {
			a.Logprobs = append(a.Logprobs, *x)
		}
	}
}

// stream sends the same request as a stream and puts its events together.
func (r *rig) stream(q fieldsOf) (a answer) {
	s := fieldsOf{}
	for k, v := range q {
		s[k] = v
	}
	list := r.events("/v1/completions", s)
	for _, data := range list[:len(list)-1] {
		var reply completionReply
		if err := json.Unmarshal([]byte(data), &reply); err != nil || len(reply.Choices) != 1 {
			r.t.Fatalf("%s: %v", data, err)
		}
		a.take(reply.Choices[0])
	}
	if list[len(list)-1] != "[DONE]" {
		r.t.Errorf("the stream ends with %s", list[len(list)-1])
	}
	return a
}

// TestSameAnswer: 200 random requests (40 with -short) give the same tokens and log-probabilities, bit for bit, alone,
// after a prefix hit, streamed, and in a batch of eight with others.
func TestSameAnswer(t *testing.T) {
	count := 200
	if testing.Short() {
		count = 40
	}
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(11, 12))
	trunks := [][]int32{randomIDs(rnd, 64), randomIDs(rnd, 40), randomIDs(rnd, 90)}
	var reqs []fieldsOf
	var want []answer
	for i := range count {
		q := randomRequest(rnd, trunks)
		q["cache_salt"] = fmt.Sprint("alone ", i) // shares no prefix with anybody
		reqs = append(reqs, q)
		want = append(want, r.ask(q))
	}
	if h := r.model.Engine.Stats().Hits; h != 0 {
		t.Fatalf("%d tokens were found in the cache by requests that share nothing", h)
	}
	same := func(how string, i int, got answer) {
		t.Helper()
		if d := cmp.Diff(want[i], got); d != "" {
			t.Errorf("request %d %v, %s: %s", i, reqs[i], how, d)
		}
	}
	for i, q := range reqs {
		q["cache_salt"] = "together"
		same("cached", i, r.ask(q))
		same("streamed", i, r.stream(q))
	}
	if h := r.model.Engine.Stats().Hits; h < 5*count {
		t.Errorf("only %d tokens came from the cache", h)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < len(reqs); i += 8 {
				same("in a batch", i, r.ask(reqs[i]))
			}
		})
	}
	wg.Wait()
	r.quiet()
}

// TestChoicesOfOneRequest: n choices and several prompts in one body are those of as many single requests with the
// seeds that follow.
func TestChoicesOfOneRequest(t *testing.T) {
	r := newRig(t, setup{})
	rnd := rand.New(rand.NewPCG(13, 14))
	prompts := [][]int32{randomIDs(rnd, 9), randomIDs(rnd, 21)}
	var many completionReply
	r.post("/v1/completions", fieldsOf{"prompt": prompts, "n": 3, "seed": 100, "max_tokens": 12, "logprobs": 2}, &many)
	if len(many.Choices) != 6 || many.Usage.Prompt != 30 {
		t.Fatalf("%d choices, %d prompt tokens", len(many.Choices), many.Usage.Prompt)
	}
	for i, c := range many.Choices {
		one := r.ask(fieldsOf{"prompt": prompts[i/3], "seed": 100 + i%3, "max_tokens": 12, "logprobs": 2})
		var got answer
		got.take(c)
		if d := cmp.Diff(one, got); d != "" || c.Index != i {
			t.Errorf("choice %d (index %d): %s", i, c.Index, d)
		}
	}
}
