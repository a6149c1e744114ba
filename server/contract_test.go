package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
	"antiphase/lab"
	"antiphase/model"
	"antiphase/tokenizer/chat"
)

// Every kind of error has its status, type, parameter and code, also when it is wrapped; an unknown one tells nothing
// but the request's id.
func TestPublicErrors(t *testing.T) {
	for _, x := range []struct {
		err               error
		status            int
		kind, param, code string
		says              string
	}{
		{invalid("top_p", "is %d", 2), 400, typeInvalid, "top_p", "", "top_p: is 2"},
		{&infer.FieldError{Field: "stop", Problem: "is empty"}, 400, typeInvalid, "stop", "", "stop: is empty"},
		{&lab.FieldError{Field: "rows", Problem: "are many"}, 400, typeInvalid, "rows", "", "rows: are many"},
		{&infer.ContextError{Prompt: 9, Limit: 8, Of: "context"}, 400, typeInvalid, "prompt",
			"context_length_exceeded", "9 tokens"},
		{model.ErrParts, 501, typeServer, "", "not_implemented", model.ErrParts.Error()},
		{chat.ErrTemplate, 400, typeInvalid, "messages", "", chat.ErrTemplate.Error()},
		{errDeadline, 504, typeServer, "", "deadline_exceeded", "longer than"},
		{errGone, 499, typeServer, "", "", "gone"}, {errSlow, 499, typeServer, "", "", "gone"},
		{context.Canceled, 499, typeServer, "", "", "gone"},
		{errors.New("secret"), 500, typeServer, "", "internal_error", "under request id7"},
	} {
		for _, err := range []error{x.err, fmt.Errorf("while busy: %w", x.err)} {
			e := public(err, "id7")
			if e.Status != x.status || e.Type != x.kind || e.Param != x.param || e.Code != x.code ||
				!strings.Contains(e.Message, x.says) || strings.Contains(e.Message, "secret") {
				t.Errorf("%v: %+v", err, e)
			}
			b, _ := json.Marshal(e.body())
			var body struct {
				Error struct {
					Message, Type string
					Param, Code   *string
				}
			}
			if err := json.Unmarshal(b, &body); err != nil || body.Error.Message != e.Message ||
				body.Error.Type != x.kind || (body.Error.Param == nil) != (x.param == "") ||
				(body.Error.Code == nil) != (x.code == "") {
				t.Errorf("%v: %s, %v", x.err, b, err)
			}
		}
	}
	r := newBare(t, setup{})
	for retry, want := range map[time.Duration]string{0: "", time.Millisecond: "1", time.Second: "1",
		1001 * time.Millisecond: "2"} {
		w := httptest.NewRecorder()
		r.fail(w, httptest.NewRequest("GET", "/", nil), &apiError{Status: http.StatusServiceUnavailable, Retry: retry})
		if got := w.Header().Get("Retry-After"); got != want || w.Code != 503 {
			t.Errorf("%v: Retry-After %q, want %q", retry, got, want)
		}
	}
}

// What a choice makes of events: text, tokens with offsets in characters, what is held back until its text is there,
// and the reason.
func TestChoiceByHand(t *testing.T) {
	c := &choice{logprobs: true, keep: true}
	type step struct {
		ev   infer.Event
		want []int // offsets of the tokens that are released
		text string
	}
	for i, s := range []step{
		{infer.Event{ID: 1, Prompt: true, Text: "é", Offset: 0}, []int{0}, "é"},
		{infer.Event{ID: 2, Text: "", Offset: 2}, nil, ""}, // half of a character
		{infer.Event{ID: 3, Text: "日", Offset: 2}, []int{1, 1}, "日"},
		{infer.Event{ID: 4, Text: "ab", Offset: 5, Cached: 3}, []int{2}, "ab"},
		{infer.Event{ID: 5, Text: "", Offset: 7}, nil, ""}, // held back: it may be part of a stop
		{infer.Event{ID: -1, Done: true, Cut: true, Reason: infer.ReasonStop}, nil, ""},
	} {
		p := c.add(s.ev)
		if len(p.tokens) != len(s.want) || p.text != s.text || p.done != s.ev.Done {
			t.Fatalf("event %d: %+v", i, p)
		}
		for k, tok := range p.tokens {
			if tok.offset != s.want[k] || tok.first != (tok.id == 1) {
				t.Errorf("event %d: token %d is %+v, want offset %d", i, k, tok, s.want[k])
			}
		}
	}
	if c.generated != 4 || c.cached != 0 || c.reason != "stop" || c.failed || len(c.tokens) != 4 {
		t.Errorf("%d generated, %d cached, %q, %d tokens", c.generated, c.cached, c.reason, len(c.tokens))
	}
	whole := &choice{logprobs: true}
	whole.add(infer.Event{ID: 1, Offset: 0})
	if p := whole.add(infer.Event{ID: -1, Done: true, Reason: infer.ReasonLength}); len(p.tokens) != 1 ||
		whole.reason != "length" {
		t.Errorf("the end releases %d tokens, %q", len(p.tokens), whole.reason)
	}
	for _, reason := range []string{infer.ReasonEOS, infer.ReasonComplete, infer.ReasonStop} {
		x := &choice{}
		if x.add(infer.Event{ID: -1, Done: true, Reason: reason}); x.reason != "stop" || x.failed {
			t.Errorf("%q is %q", reason, x.reason)
		}
	}
	bad := &choice{}
	if bad.add(infer.Event{ID: -1, Done: true, Reason: infer.ReasonCancelled}); bad.reason != "" || !bad.failed {
		t.Errorf("a cancelled choice ends as %q", bad.reason)
	}
	for x, want := range map[float64]float64{-1: -1, lowest: lowest, lowest - 1: lowest, math.Inf(-1): lowest, 0: 0} {
		if finite(x) != want {
			t.Errorf("%g is sent as %g", x, finite(x))
		}
	}
}

// Usage: each prompt once, the most that any of its choices found in the cache, every choice's own tokens.
func TestUsageByHand(t *testing.T) {
	list := []*choice{{generated: 3, cached: 6}, {generated: 4, cached: 8}, {generated: 0, cached: 4},
		{generated: 1, cached: 4}}
	reqs := make([]infer.Request, 4)
	for i := range reqs {
		reqs[i].IDs = make([]int32, 10+i/2)
	}
	u := count(list, reqs, 2)
	if u.Prompt != 21 || u.Completion != 8 || u.Total != 29 || u.Details.Cached != 12 {
		t.Errorf("%+v", u)
	}
	for i := range 3 { // of three choices any may have found most
		three := []*choice{{cached: 2}, {cached: 2}, {cached: 2}}
		three[i].cached = 7
		if u := count(three, reqs[:3], 3); u.Details.Cached != 7 || u.Prompt != 10 {
			t.Errorf("choice %d has found most: %+v", i, u)
		}
	}
	if u := count(list[:1], reqs[:1], 1); u.Prompt != 10 || u.Completion != 3 || u.Details.Cached != 6 {
		t.Errorf("%+v", u)
	}
}

// Calls of tools in an answer: each whole one in order, the rest is text; what is not whole or not a call stays text.
func TestToolCallsByHand(t *testing.T) {
	tagged := func(s string) string { return "<tool_call>" + s + "</tool_call>" }
	for _, x := range []struct {
		text, rest string
		want       []string // name and arguments
	}{
		{"plain  ", "plain  ", nil},
		{tagged(`{"name":"a","arguments":{"x": 1}}`), "", []string{`a {"x":1}`}},
		{" so " + tagged(`{"name":"a"}`) + " and " + tagged(`{"name":"b","arguments":[ ]}`) + " ", "so  and",
			[]string{"a {}", "b []"}},
		{tagged(`nonsense`) + "x", tagged(`nonsense`) + "x", nil},
		{tagged(`{"name":""}`), tagged(`{"name":""}`), nil},
		{tagged(`{"name":"a"}`) + "<tool_call>{", "<tool_call>{", []string{"a {}"}},
		{tagged(`x`) + tagged(`{"name":"a"}`), tagged(`x`), []string{"a {}"}},
	} {
		rest, calls := parseToolCalls(x.text)
		var got []string
		ids := map[string]bool{}
		for i, c := range calls {
			if c.Index != i || c.Type != "function" || !strings.HasPrefix(c.ID, "call_") || ids[c.ID] {
				t.Errorf("%q: call %+v", x.text, c)
			}
			ids[c.ID] = true
			got = append(got, c.Function.Name+" "+c.Function.Arguments)
		}
		if rest != x.rest || strings.Join(got, "; ") != strings.Join(x.want, "; ") {
			t.Errorf("%q: %q, %q; want %q, %q", x.text, rest, got, x.rest, x.want)
		}
	}
	for _, x := range []struct{ text, reason, want, content string }{
		{"hello", "stop", "stop", "hello"}, {tagged(`{"name":"a"}`), "stop", "tool_calls", ""},
		{tagged(`{"name":"a"}`), "length", "length", ""},
		{"so " + tagged(`{"name":"a"}`), "stop", "tool_calls", "so"},
	} {
		ch := &choice{reason: x.reason}
		ch.text.WriteString(x.text)
		d, c := &chatDialect{tools: true}, &call{model: &Model{}}
		b, _ := json.Marshal(d.whole(c, []*choice{ch}, usage{}))
		e, _ := json.Marshal(d.end(c, ch))
		null := strings.Contains(string(b), `"content":null`) && !strings.Contains(string(e), `"content"`)
		if null != (x.content == "") { // OpenAI's: no text is null in an answer, and absent in a stream
			t.Errorf("%q: %s and %s", x.text, b, e)
		}
		for _, text := range []string{string(b), string(e)} {
			if !strings.Contains(text, fmt.Sprintf(`"finish_reason":%q`, x.want)) || x.content != "" &&
				!strings.Contains(text, fmt.Sprintf(`"content":%q`, x.content)) {
				t.Errorf("%q: %s", x.text, text)
			}
		}
	}
}
