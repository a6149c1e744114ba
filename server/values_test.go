package server

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// TestManyValues: a body as large as is read, full of the smallest values there are, is refused for its values, and
// takes no more memory than a few times its own size. One that has as many as are allowed is read.
func TestManyValues(t *testing.T) {
	r := newBare(t, setup{})
	const size = 8 << 20
	fill := func(head, item, tail string) string {
		return head + strings.Repeat(item+",", (size-len(head)-len(tail)-len(item))/(len(item)+1)) + item + tail
	}
	for name, c := range map[string]struct{ path, body string }{
		"ids":           {"/v1/completions", fill(`{"prompt":[`, `1`, `]}`)},
		"prompts":       {"/v1/completions", fill(`{"prompt":[`, `""`, `]}`)},
		"fields":        {"/v1/completions", fill(`{`, `"a":1`, `}`)},
		"biases":        {"/v1/completions", fill(`{"prompt":"a","logit_bias":{`, `"1":1`, `}}`)},
		"messages":      {"/v1/chat/completions", fill(`{"messages":[`, `{}`, `]}`)},
		"parts":         {"/v1/chat/completions", fill(`{"messages":[{"role":"user","content":[`, `{}`, `]}]}`)},
		"tools":         {"/v1/chat/completions", fill(`{"messages":[],"tools":[`, `{}`, `]}`)},
		"interventions": {"/v1/attention", fill(`{"prompt":"a","interventions":[`, `{}`, `]}`)},
		"layers":        {"/v1/attention", fill(`{"prompt":"a","layers":[`, `1`, `]}`)},
		"tokens":        {"/detokenize", fill(`{"tokens":[`, `1`, `]}`)},
		"no JSON":       {"/tokenize", strings.Repeat("[", size)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest("POST", c.path, strings.NewReader(c.body)))
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "too_many_values") {
			t.Errorf("%s: %d %.200s", name, w.Code, w.Body)
		}
		if n := (after.TotalAlloc - before.TotalAlloc) / size; n > 8 { // reading it takes five: the buffer grows
			t.Errorf("%s: %d times its size was allocated", name, n)
		}
	}
	most := r.cfg.Limits.Prompts*r.model.Context + spareValues
	for _, n := range []int{most, most + 1} {
		// Four for the beginning: itself, a brace, a colon, a bracket.
		body := `{"tokens":[1` + strings.Repeat(",1", n-4) + `]}`
		if got := countValues([]byte(body)); got != n {
			t.Fatalf("%d values counted, want %d", got, n)
		}
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/detokenize", strings.NewReader(body)))
		if want := map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[n == most]; w.Code != want {
			t.Errorf("%d values of %d: %d %.100s", n, most, w.Code, w.Body)
		}
	}
}

// The bound is that of the model with the longest context, whichever it is, and commas in texts are no values.
func TestValuesOfSeveralModels(t *testing.T) {
	l := Limits{Prompts: 3}
	for _, contexts := range [][]int{{7}, {7, 5}, {5, 7}, {2, 7, 3}} {
		var models []*Model
		for _, n := range contexts {
			models = append(models, &Model{Context: n})
		}
		most := 3*7 + spareValues
		for n, good := range map[int]bool{most: true, most + 1: false, 1: true} {
			text := strings.Repeat(`[,{:\"`, n) // of one value
			for _, b := range []string{strings.Repeat(",", n-1), strings.Repeat(",", n-1) + `"` + text + `"`} {
				if err := checkValues([]byte(b), &l, models); (err == nil) != good || countValues([]byte(b)) != n {
					t.Errorf("%d values, %d counted, contexts %v: %v", n, countValues([]byte(b)), contexts, err)
				}
			}
		}
	}
}
