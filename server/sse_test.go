package server

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stream gets a ping after every idle span and for as long as it is idle; an event begins the span anew, and nothing
// follows its end. Headers go out with the first of them and not before.
func TestPingsWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		e := newEvents(w, &Limits{Ping: 10 * time.Second})
		is := func(when string, pings, events int) {
			t.Helper()
			synctest.Wait()
			e.mu.Lock() // the recorder's text and headers are a ping's too
			text := w.Body.String()
			e.mu.Unlock()
			if n, m := strings.Count(text, ": ping\n\n"), strings.Count(text, "data: "); n != pings || m != events {
				t.Errorf("%s: %d pings, %d events; want %d, %d", when, n, m, pings, events)
			}
		}
		time.Sleep(9 * time.Second)
		is("before the first span", 0, 0)
		flushed := func() (bool, string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			return w.Flushed, w.Header().Get("Content-Type")
		}
		if sent, _ := flushed(); sent || e.begun() {
			t.Error("something was sent before the first ping")
		}
		time.Sleep(2 * time.Second)
		is("after one", 1, 0)
		if sent, kind := flushed(); !sent || !e.begun() || kind != "text/event-stream; charset=utf-8" {
			t.Errorf("the ping was not sent: %v, %q", sent, kind)
		}
		time.Sleep(30 * time.Second) // 41 s
		is("after four", 4, 0)
		for range 5 { // events every nine seconds leave no idle span
			if err := e.send(map[string]int{"a": 1}); err != nil || e.flush() != nil {
				t.Fatal(err)
			}
			time.Sleep(9 * time.Second)
		}
		is("while there are events", 4, 5)
		time.Sleep(2 * time.Second)
		is("after the last event", 5, 5)
		if err := e.raw("[DONE]"); err != nil {
			t.Fatal(err)
		}
		e.close()
		time.Sleep(time.Minute)
		is("after the end", 5, 6)
		if !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
			t.Errorf("ends with %q", w.Body.String())
		}
	})
}
