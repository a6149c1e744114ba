package server

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"antiphase/infer"
)

// resident is the process's memory in bytes, after the collector has given back what it can.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestMemoryAfterLoad: a server takes the memory of full load before its first request, and after a load that uses
// every page of its cache, with long prompts, echoes and refusals, it holds no more than before.
func TestMemoryAfterLoad(t *testing.T) {
	r := newRig(t, setup{big: true, Options: infer.Options{Slots: 8}, Config: Config{Limits: Limits{Queue: 2}}})
	ask := func(seed uint64, tokens int) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := fieldsOf{"prompt": randomIDs(rnd, tokens), "max_tokens": 2, "ignore_eos": true}
		if seed%3 == 0 {
			q["echo"], q["logprobs"] = true, 1
		}
		if status, _, b := r.do("POST", "/v1/completions", q); status != 200 && status != 429 {
			t.Errorf("%d %.200s", status, b)
		}
	}
	ask(1, 10) // both sides of a connection
	base := resident(t)
	cache := 8 * 2048 * r.net.CacheBytes()
	var wg sync.WaitGroup
	for i := range uint64(16) {
		wg.Go(func() { ask(i, 1500) })
	}
	wg.Wait()
	r.quiet()
	if _, _, b := r.do("GET", "/metrics", nil); !strings.Contains(string(b), "prompt_tokens_total") {
		t.Error("no metrics")
	}
	r.http.Client().CloseIdleConnections()
	after := resident(t)
	t.Logf("%.1f MiB, then %.1f; the cache has %.1f", float64(base)/(1<<20), float64(after)/(1<<20),
		float64(cache)/(1<<20))
	if after-base > cache/8 {
		t.Errorf("%d bytes more than before the load; the whole cache has %d", after-base, cache)
	}
}
