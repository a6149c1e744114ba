package server

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
)

// failing is a device whose work fails on demand.
type failing struct {
	device.Device
	fault error
}

func (d *failing) Sync() error { return errors.Join(d.fault, d.Device.Sync()) }

// computing are requests to every route that computes.
func computing() map[string]fieldsOf {
	return map[string]fieldsOf{
		"/v1/completions":      {"prompt": "abc", "max_tokens": 3},
		"/v1/chat/completions": {"messages": []any{fieldsOf{"role": "user", "content": "hi"}}, "max_tokens": 3},
		"/v1/embeddings":       {"input": "abc"},
		"/v1/attention":        {"prompt": "abc"},
	}
}

// A device that fails is the server's fault on every route: 500 without a word of the inside. Afterwards all is as
// before.
func TestFailingDevice(t *testing.T) {
	d := &failing{}
	r := newRig(t, setup{device: func(c device.Device) device.Device { d.Device = c; return d }})
	for path, body := range computing() {
		d.fault = errors.New("the device at /secret/path is lost")
		msg := r.refused(path, body, http.StatusInternalServerError, "", "internal_error")
		if d.fault = nil; strings.Contains(msg, "secret") || !strings.Contains(msg, "req_") {
			t.Errorf("%s: %q", path, msg)
		}
		if status, _, b := r.do("POST", path, body); status != http.StatusOK {
			t.Errorf("%s after the fault: %d %s", path, status, b)
		}
	}
	r.quiet()
}

// A model whose queue is full refuses its own requests on every route, and nobody else's; in whatever order they are
// served. If all are full, no body is read.
func TestFullQueueOfOneModel(t *testing.T) {
	r := newBare(t, setup{}).several(Source{ID: "a", First: -1, Template: nil}, Source{ID: "b", First: -1})
	list := r.models.list()
	fill := func(m *Model, full bool) {
		m.gate.mu.Lock()
		defer m.gate.mu.Unlock()
		if m.gate.waiting = 0; full {
			m.gate.waiting = m.gate.maxWait
		}
	}
	for path, body := range computing() {
		if path == "/v1/chat/completions" { // these have no template
			continue
		}
		for _, full := range [][]bool{{true, false}, {false, true}, {true, true}, {false, false}} {
			for i, m := range list {
				fill(m, full[i])
			}
			for i, m := range list {
				body["model"] = m.ID
				want := http.StatusOK
				if full[i] {
					want = http.StatusTooManyRequests
				}
				if status, _, b := r.do("POST", path, body); status != want {
					t.Errorf("%s of %s, full %v: %d %s", path, m.ID, full, status, b)
				}
			}
			delete(body, "model")
			if status, _, b := r.do("POST", path, "no JSON"); status != map[bool]int{true: http.StatusTooManyRequests,
				false: http.StatusBadRequest}[full[0] && full[1]] {
				t.Errorf("%s, full %v: a body that cannot be read: %d %s", path, full, status, b)
			}
		}
	}
}

// A file of keys that cannot be read to its end gives no keys: some would be missing.
func TestKeysCutShort(t *testing.T) {
	lost := errors.New("the disk is lost")
	if list, err := ReadKeys(iotest.TimeoutReader(
		iotest.OneByteReader(strings.NewReader("sk-one-one\nsk-two-two\n")))); err == nil {
		t.Errorf("%q after a time-out", list)
	}
	if list, err := ReadKeys(iotest.ErrReader(lost)); !errors.Is(err, lost) {
		t.Errorf("%q, %v", list, err)
	}
	if list, err := ReadKeys(strings.NewReader("sk-one-one\n" + strings.Repeat("k", 1<<20))); err == nil {
		t.Errorf("%d keys, one of a megabyte", len(list))
	}
}

// The maps of a model are those of its architecture.
func TestMapsOfEveryArchitecture(t *testing.T) {
	for _, a := range layer.Archs() {
		want := []string{"a1"}
		if a.Maps == 2 {
			want = []string{"a1", "a2", "diff"}
		}
		if m := (&Model{config: model.Config{Arch: a.Name}}); !slices.Equal(m.maps(), want) || m.softmaxes() != a.Maps {
			t.Errorf("%s has maps %v of %d, want %v", a.Name, m.maps(), m.softmaxes(), want)
		}
	}
}

// A prompt of the lab begins as one of a completion does, unless told otherwise.
func TestAttentionBeginsLikeCompletions(t *testing.T) {
	r := newBare(t, setup{}).several(Source{ID: "a", First: 257, Created: time.Unix(1, 0)})
	for _, c := range []struct {
		body fieldsOf
		want int
	}{{fieldsOf{"prompt": "ab"}, 3}, {fieldsOf{"prompt": "ab", "add_special_tokens": true}, 3},
		{fieldsOf{"prompt": "ab", "add_special_tokens": false}, 2}, {fieldsOf{"prompt": []int{97, 98}}, 2}} {
		var a attended
		if r.post("/v1/attention", c.body, &a); len(a.Tokens) != c.want {
			t.Errorf("%v: %d tokens, want %d", c.body, len(a.Tokens), c.want)
		}
		var reply completionReply
		c.body["max_tokens"] = 1
		if r.post("/v1/completions", c.body, &reply); reply.Usage.Prompt != c.want {
			t.Errorf("%v: %d prompt tokens, want %d", c.body, reply.Usage.Prompt, c.want)
		}
	}
}
