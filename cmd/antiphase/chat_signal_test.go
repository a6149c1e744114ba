//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Ctrl-C ends the answer that is being written, and the program never: without an answer it says how to leave.
func TestInterruptedAnswer(t *testing.T) {
	r, notes := conversation(t, heard)
	r.a.signals = make(chan os.Signal, 1)
	stop := r.watch()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.answering(cancel)
	interrupt := func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
		t.Fatal("the answer goes on")
	}
	r.answering(nil)
	interrupt()
	said := func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return notes.String()
	}
	for begin := time.Now(); said() == "" && time.Since(begin) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if got := said(); got != "\nCtrl-D leaves\n> " {
		t.Errorf("%q", got)
	}
}

// What was written of an answer before it was ended stays part of the conversation; it is not an error.
func TestPartOfAnAnswer(t *testing.T) {
	r, _ := conversation(t, heard)
	r.f.MaxTokens, r.f.Seed, r.f.IgnoreEOS, r.f.RepetitionPenalty = 40, 5, true, 1
	var out bytes.Buffer
	r.a.out = writerFunc(func(b []byte) (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.cancel != nil && len(b) > 0 {
			r.cancel()
		}
		return out.Write(b)
	})
	if err := r.turn("abc"); err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(out.String(), "\n")
	if len(r.said) != 2 || r.said[0].Content != "abc" || r.said[1].Role != "assistant" || r.said[1].Content != text ||
		r.f.Seed != 6 || r.cancel != nil {
		t.Errorf("%q: %+v, seed %d", text, r.said, r.f.Seed)
	}
	if n := len(r.s.Tokens()) - len("<u:abc>"); n < 1 || n >= 40 {
		t.Errorf("%d tokens were written", n)
	}
}
