package server

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every limit has its documented default, keeps what is given, and refuses less than nothing.
func TestEveryLimit(t *testing.T) {
	var zero Limits
	if err := zero.complete(); err != nil {
		t.Fatal(err)
	}
	want := Limits{Body: 8 << 20, Header: 64 << 10, HeaderTimeout: 10 * time.Second, BodyTimeout: 30 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, Connections: 1024, Queue: 256, Choices: 16,
		Prompts: 64, Stops: 4, StopBytes: 256, Logprobs: 20,
		Biases: 1024, Messages: 1024, Cells: 1 << 20, Entries: 1 << 26, Tops: 64, Request: 10 * time.Minute,
		Compile: time.Second, SchemaDepth: 32,
		Ping: 15 * time.Second, Drain: 30 * time.Second}
	if zero != want {
		t.Errorf("defaults %+v, want %+v", zero, want)
	}
	for i := range reflect.TypeFor[Limits]().NumField() {
		name := reflect.TypeFor[Limits]().Field(i).Name
		for value, good := range map[int64]bool{1: true, 12345: true, -1: false} {
			var l Limits
			reflect.ValueOf(&l).Elem().Field(i).SetInt(value)
			err := l.complete()
			if (err == nil) != good {
				t.Errorf("%s = %d: %v", name, value, err)
			}
			if words := inWords(name); !good && !strings.HasPrefix(fmt.Sprint(err), "limit "+words+": is -1") {
				t.Errorf("%s = %d: %v does not name it as %q", name, value, err, words)
			}
			if good {
				rest := want
				reflect.ValueOf(&rest).Elem().Field(i).SetInt(value)
				if l != rest {
					t.Errorf("%s = %d became %+v", name, value, l)
				}
			}
		}
	}
	for _, x := range []struct{ queue, request, context, slots, wantQueue, wantRequest int }{
		{0, 0, 128, 2, 4 * 128 * 2, 64 * 128}, {7, 9, 128, 2, 7, 9}, {0, 0, 1 << 13, 1, 4 << 13, 1 << 18},
		{0, 0, 1 << 19, 1, 4 << 19, 1 << 19},
	} {
		l, m := Limits{QueueTokens: x.queue, RequestTokens: x.request}, &Model{Context: x.context, Slots: x.slots}
		if q, r := l.queueTokens(m), l.requestTokens(m); q != x.wantQueue || r != x.wantRequest {
			t.Errorf("%+v: %d and %d", x, q, r)
		}
	}
}

// inWords writes MaxTokens as max tokens.
func inWords(name string) string {
	return strings.TrimSpace(strings.ToLower(regexp.MustCompile(`[A-Z]`).ReplaceAllString(name, " $0")))
}

// Both sides of the bounds on keys.
func TestKeyBounds(t *testing.T) {
	list := make([]string, maxKeys)
	for i := range list {
		list[i] = fmt.Sprintf("key-%06d", i)
	}
	for name, x := range map[string]struct {
		keys []string
		n    int
		bad  bool
	}{
		"none": {nil, -1, false}, "blank": {[]string{"", " "}, -1, false}, "seven": {[]string{"1234567"}, 0, true},
		"eight":               {[]string{"12345678"}, 1, false},
		"spaces do not count": {[]string{"1234567 "}, 0, true},
		"blank among others":  {[]string{"12345678", " ", "abcdefgh"}, 2, false},
		"most":                {list, maxKeys, false}, "one more": {append(list, "12345678"), 0, true},
	} {
		k, err := NewKeys(x.keys...)
		if (err != nil) != x.bad || err == nil && (k == nil) != (x.n < 0) || k != nil && len(k.sums) != x.n {
			t.Errorf("%s: %v, %v", name, k != nil, err)
		}
	}
	k := keys(t, "12345678", "abcdefgh")
	if k.match("abcdefgh") != 1 {
		t.Error("the second key is not the second")
	}
}
