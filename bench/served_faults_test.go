package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"antiphase/infer"
)

// What is wrong with a server's answer is an error that says it, whether the answer is streamed or not: another status,
// no events, an end without usage or without JSON, and a server that is not alive.
func TestServedFaults(t *testing.T) {
	for _, c := range []struct {
		live, status int
		body         string
		want         [2]string // of a whole answer, and of a stream
	}{
		{503, 200, "", [2]string{"GET /livez: 503", "GET /livez: 503"}},
		{200, 503, "too hot", [2]string{"503 Service Unavailable: too hot", "503 Service Unavailable: too hot"}},
		{200, 200, "", [2]string{"", "unexpected EOF"}},
		{200, 200, "data: {}\n\n", [2]string{"", "unexpected EOF"}},
		{200, 200, "data: [DONE]\n\n", [2]string{"", "not 4 tokens"}},
		{200, 200, "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", [2]string{"", "not 4 tokens"}},
		{200, 200, "data: {}\n\ndata: x\n\ndata: [DONE]\n\n", [2]string{"", `the stream ended with "x"`}},
		{200, 200, "data: {}\n\ndata: {\"usage\":{\"completion_tokens\":4}}\n\ndata: [DONE]\n\n", [2]string{"", ""}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path == "/livez" {
				w.WriteHeader(c.live)
				return
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		o := ServedOptions{URL: server.URL, Output: 4}
		for i, want := range c.want {
			_, err := o.served(t.Context(), [][]int32{{1}, {2}}, i == 1)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%d and %q, streamed %v: %v, want %q", c.status, c.body, i == 1, err, want)
			}
		}
		server.Close()
	}
}

// Why a measurement of steps ends: enough samples, too few, a cancelled context, a ceiling that fails.
func TestWatchEnds(t *testing.T) {
	e := nanoEngine(t, 1)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	for name, x := range map[string]struct {
		ctx    context.Context
		tokens int
		top    error
		want   string
	}{
		"enough": {t.Context(), 9, nil, ""}, "too few": {t.Context(), 5, nil, "bench: 2 of 3 samples were taken"},
		"cancelled": {gone, 9, nil, context.Canceled.Error()}, "broken": {t.Context(), 9, broken, "broken"},
	} {
		w := &watch{c: &Config{Warmup: 2, Reps: 3}, stretch: stretch{0, 1}, begin: func() {}, lengths: make([]int, 1),
			top: &Ceiling{Run: func() (float64, error) { return 1, x.top }}}
		err := w.run(x.ctx, e, []infer.Request{{IDs: []int32{1},
			Sampling: infer.Sampling{MaxTokens: x.tokens, IgnoreEOS: true}}})
		if (err == nil) != (x.want == "") || err != nil && err.Error() != x.want {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// Names of any length and alphabet stand in one column, in any order of rows; only rows with ops list them.
func TestPrintedColumns(t *testing.T) {
	names := []string{"y=x·Wᵀ", "a longer name", "ß"}
	for first := range names {
		rows := []Row{{Name: names[first]}, {Name: names[(first+1)%3], Ops: []OpTime{{Op: "Add", Seconds: 1}}},
			{Name: names[(first+2)%3]}}
		var b bytes.Buffer
		if err := Print(&b, rows); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		for i, row := range rows {
			if want := fmt.Sprintf("%-13s  ", row.Name); !strings.HasPrefix(strings.TrimLeft(lines[i+1], " "), want) {
				t.Errorf("%q does not begin with %q", lines[i+1], want)
			}
		}
		if strings.Count(b.String(), "ops of ") != 1 || !strings.Contains(b.String(), "ops of "+rows[1].Name+"\n") {
			t.Errorf("%s", &b)
		}
	}
	var b bytes.Buffer
	if err := Print(&b, nil); err != nil || strings.Contains(b.String(), "ceiling:") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
