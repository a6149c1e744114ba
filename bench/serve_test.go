package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestServe: a stub that answers, refuses and breaks in turn is counted as such, and its times are those it took.
func TestServe(t *testing.T) {
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Prompt []int
			Max    int `json:"max_tokens"`
		}
		if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Prompt) < 3 || len(body.Prompt) > 5 ||
			body.Max != 4 {
			t.Errorf("%+v", body)
		}
		switch n.Add(1) % 3 {
		case 1:
			w.WriteHeader(http.StatusTooManyRequests)
			return
		case 2:
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n") // and then silence
			return
		}
		for i := range 4 {
			time.Sleep(2 * time.Millisecond)
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\"%d\"}]}\n\n: ping\n\n", i)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	prompt, err := ParseLengths("3..5")
	if err != nil {
		t.Fatal(err)
	}
	output, err := ParseLengths("4")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Serve(context.Background(),
		ServeOptions{URL: s.URL, Rate: 500, Requests: 30, Prompt: prompt, Output: output, Vocab: 10,
			Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	last := r.TTFT.Mean + 3*r.ITL.Mean // when the fourth token came; when each is read depends on the machine
	if r.Answered != 10 || r.Rejected != 10 || r.Failed != 10 || r.TTFT.P50 < 0.002 || last < 0.008 ||
		r.E2E.Mean < last || r.Goodput != r.RPS || r.Tokens < 1 {
		t.Errorf("%+v", r)
	}
}

// TestServeClosedLoop: no more requests are open than asked for, and as many whenever there are enough left. Tokens are
// those of the usage.
func TestServeClosedLoop(t *testing.T) {
	var open, most atomic.Int32
	var once sync.Once
	together := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := open.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		if n == 3 {
			once.Do(func() { close(together) })
		}
		select {
		case <-together:
		case <-r.Context().Done(): // after the deadline
		}
		time.Sleep(time.Millisecond) // one more would come meanwhile
		open.Add(-1)
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"ab\"}]}\n\ndata: "+
			"{\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n")
	}))
	defer s.Close()
	one, err := ParseLengths("4")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Serve(context.Background(),
		ServeOptions{URL: s.URL, Concurrency: 3, Requests: 30, Prompt: one, Output: one, Vocab: 10,
			Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Tokens * r.Seconds; r.Answered != 30 || r.Open != 3 || most.Load() != 3 || math.Round(got) != 210 {
		t.Errorf("at most %d open, %g tokens: %+v", most.Load(), got, r)
	}
}

func TestParseLengths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lengths")
	if err := os.WriteFile(file, []byte("5\n7 9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for s, ok := range map[string]bool{"1": true, "2..9": true, "@" + file: true, "": false, "0": false, "9..2": false,
		"x": false, "@missing": false, "-1": false} {
		if _, err := ParseLengths(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
	l, _ := ParseLengths("@" + file)
	if a, b := l.draw(nil, 1), l.draw(nil, 5); a != 7 || b != 9 {
		t.Errorf("%d %d", a, b)
	}
}

// All numbers of a load, by hand: five requests sent within two seconds, of which three are answered.
func TestSummaryByHand(t *testing.T) {
	const ms = time.Millisecond
	shots := []shot{
		{at: 0, status: 200, tokens: 3, first: 100 * ms, whole: 500 * ms, gaps: []float64{0.1, 0.3}},
		{at: 500 * ms, status: http.StatusTooManyRequests, whole: 4 * ms},
		{at: 900 * ms, status: 200, tokens: 1, first: 200 * ms, whole: 200 * ms},
		{at: 1500 * ms, err: errors.New("broken"), whole: 70 * ms},
		{at: 2000 * ms, status: 200, whole: 900 * ms}, // without text
	}
	r := summarize(&ServeOptions{Deadline: 500 * ms}, shots, 4*time.Second)
	if r.Requests != 5 || r.Answered != 3 || r.Rejected != 1 || r.Failed != 1 || r.Errors["broken"] != 1 {
		t.Errorf("%+v", r)
	}
	near(t, map[string][2]float64{
		"offered":  {r.Rate, 2}, // four gaps in two seconds
		"answered": {r.RPS, 0.75}, "tokens": {r.Tokens, 1}, "goodput": {r.Goodput, 0.5}, "deadline": {r.Deadline, 0.5},
		"seconds": {r.Seconds, 4},

		"ttft": {r.TTFT.Mean, 0.15}, "tpot": {r.TPOT.Mean, 0.2}, "itl": {r.ITL.Mean, 0.2}, "e2e": {r.E2E.Mean, 1.6 / 3},
		"refusal": {r.Reject.Mean, 0.004},
		"median":  {r.E2E.P50, 0.5}, "slowest": {r.E2E.P99, 0.9},
	})
	list := make([]float64, 200) // 200, 199 … 1
	for i := range list {
		list[i] = float64(200 - i)
	}
	if got := spread(list); got != (Spread{Mean: got.Mean, P50: 101, P99: 199}) || !(math.Abs(got.Mean-100.5) <= 1e-9) {
		t.Errorf("of 200: %+v", got)
	}
	if r := summarize(&ServeOptions{}, shots[:1], time.Second); r.Rate != 0 || r.Requests != 1 {
		t.Errorf("one request is offered at %g per second", r.Rate)
	}
}
