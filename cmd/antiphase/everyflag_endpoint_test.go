package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// oracle is an endpoint that answers every prompt alike and remembers what it was sent.
type oracle struct {
	*httptest.Server
	says string

	mu           sync.Mutex
	longest      int // prompt, in bytes
	asked        int
	inside, most int // requests at a time
	together     int // none is answered before so many have met
	met          chan struct{}
}

func newOracle(f *flagRig, says string, together int) *oracle {
	o := &oracle{says: says, together: together, met: make(chan struct{})}
	o.Server = httptest.NewServer(http.HandlerFunc(o.answer))
	f.Cleanup(o.Close)
	return o
}

// answer lets requests that are sent together meet.
func (o *oracle) answer(w http.ResponseWriter, r *http.Request) {
	var body struct{ Prompt string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.mu.Lock()
	o.asked++
	if o.inside++; o.inside == o.together && o.most < o.together {
		close(o.met)
	}
	o.most, o.longest = max(o.most, o.inside), max(o.longest, len(body.Prompt))
	o.mu.Unlock()
	select {
	case <-o.met:
	case <-time.After(time.Minute): // they do not come together
	}
	time.Sleep(5 * time.Millisecond) // one more would come meanwhile
	o.mu.Lock()
	o.inside--
	o.mu.Unlock()
	fmt.Fprintf(w, `{"choices":[{"text":%q}]}`, o.says)
}

// probing asks an endpoint for needles, some at a time.
func (f *flagRig) probing(together int, args ...string) *oracle {
	f.Helper()
	o := newOracle(f, "7", together)
	f.ok(append([]string{"eval", "-m", o.URL + "#m", "-t", "needle", "--set", "needle.samples=2", "--set",
		"needle.depths=0,1", "--json", "-q", "--device", "cpu"}, args...)...)
	return o
}

var ofEndpoints = map[string]assertion{
	"eval --endpoint-context": func(f *flagRig) {
		short, long := f.probing(1, "--endpoint-context", "300"), f.probing(1, "--endpoint-context", "900")
		if 2*short.longest > long.longest || short.longest == 0 {
			f.Errorf("prompts for 300 tokens have up to %d bytes, for 900 up to %d", short.longest, long.longest)
		}
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--endpoint-context", "300"), `no --model is an endpoint`)
	},
	"eval --endpoint-concurrency": func(f *flagRig) {
		one, three := f.probing(1, "--endpoint-concurrency", "1"), f.probing(3, "--endpoint-concurrency", "3")
		if one.most != 1 || three.most != 3 {
			f.Errorf("%d requests at a time with 1, %d with 3", one.most, three.most)
		}
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--endpoint-concurrency", "2"),
			`neither a --model nor the --judge`)
	},
	"eval --judge": func(f *flagRig) {
		for says, want := range map[string]string{"yes": `"judge,none": 1\b`, "no": `"judge,none": 0\b`} {
			o := newOracle(f, says, 1)
			f.has(f.ok("eval", "-m", "run", "-t", "hotpotqa", "--limit", "2", "--json", "-q", "--judge", o.URL+"#j"),
				want)
			f.same(o.asked, 2)
		}
		f.has(f.fails("eval", "-m", "run", "-t", "lm", "--judge", "http://x#j"), `none of the tasks needs a judge`)
		f.has(f.fails("eval", "-m", "run", "-t", "hotpotqa", "--judge", "somebody"),
			`"somebody" is (no|not an) endpoint`)
	},
}
