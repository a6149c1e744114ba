package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const chatML = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if tools %}tools: {{ tools | tojson }}
{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// rig is a server over a tiny random model with the byte tokenizer.
type rig struct {
	*Server
	t     testing.TB
	model *Model
	net   *model.Model
	http  *httptest.Server
	key   string // sent with every request
	step  *steps // if the engine's steps are held
}

// setup is what a test may change.
type setup struct {
	Config
	infer.Options
	context  int
	template string
	big      bool // a model whose steps take about a millisecond, with a context of 2048
	loading  bool // no models yet
	held     bool // the engine's steps wait for the test
	threads  int  // of the device
	device   func(device.Device) device.Device
}

func newRig(t testing.TB, s setup) *rig {
	t.Helper()
	r := newBare(t, s)
	r.http = httptest.NewServer(r.Handler())
	t.Cleanup(r.http.Close)
	return r
}

// newBare is a rig without a listener.
func newBare(t testing.TB, s setup) *rig {
	t.Helper()
	set(&s.threads, 2)
	var d device.Device = cpu.New(cpu.Options{Threads: s.threads, Precision: cpu.FP32})
	t.Cleanup(func() { d.Close() })
	if s.device != nil {
		d = s.device(d)
	}
	set(&s.context, 128)
	shape := model.Config{Arch: "diff", Vocab: 260, Context: s.context, Layers: 2, Dim: 16, Heads: 4,
		KVHeads: 2, HeadDim: 4}
	if s.big {
		shape = model.Config{Arch: "diff", Vocab: 260, Context: 2048, Layers: 4, Dim: 256, Heads: 4,
			KVHeads: 2, HeadDim: 32}
	}
	net := modeltest.New(t, d, shape, layer.Memory{}, 7)
	set(&s.template, chatML)
	tpl, err := chat.Parse(s.template, nil)
	if err != nil {
		t.Fatal(err)
	}
	step := &steps{next: make(chan func())}
	if s.held {
		s.Options.Lock = step
	}
	m, err := NewModel(Source{ID: "tiny", Model: net, Tokenizer: tokenizer.Bytes(), Template: tpl, First: -1,
		EOS: []int32{256}, Created: time.Unix(1, 0), Options: s.Options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	step.held = true
	t.Cleanup(step.free)
	set(&s.Config.Limits.Wait, time.Hour) // what tests send at once is to be answered
	set(&s.Config.Limits.Compile, time.Minute)
	srv, err := New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	if !s.loading {
		if err := srv.Ready(m); err != nil {
			t.Fatal(err)
		}
	}
	return &rig{Server: srv, t: t, model: m, net: net, step: step}
}

func set[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// do sends a request, to the handler itself where there is no listener, and gives status, header and body.
func (r *rig) do(method, path string, body any, header ...string) (int, http.Header, []byte) {
	r.t.Helper()
	var rd io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		rd = strings.NewReader(b)
	default:
		j, err := json.Marshal(b)
		if err != nil {
			r.t.Fatal(err)
		}
		rd = bytes.NewReader(j)
	}
	url := path
	if r.http != nil {
		url = r.http.URL + path
	}
	q, err := http.NewRequest(method, url, rd)
	if err != nil {
		r.t.Fatal(err)
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		q.Header.Set("Authorization", "Bearer "+r.key)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
		}
		q.Header.Set(header[i], header[i+1])
	}
	if r.http == nil {
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, q)
		return w.Code, w.Header(), w.Body.Bytes()
	}
	res, err := r.http.Client().Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, res.Header, b
}

// fieldsOf is any JSON object.
type fieldsOf = map[string]any

// post sends a body and wants 200.
func (r *rig) post(path string, body any, into any) {
	r.t.Helper()
	status, _, b := r.do("POST", path, body)
	if status != http.StatusOK {
		r.t.Fatalf("POST %s %v: %d %s", path, body, status, b)
	}
	if err := json.Unmarshal(b, into); err != nil {
		r.t.Fatalf("%s: %v", b, err)
	}
}

// refused sends a body and wants an error with this status, field and code.
func (r *rig) refused(path string, body any, status int, param, code string) string {
	r.t.Helper()
	got, _, b := r.do("POST", path, body)
	var e struct {
		Error struct {
			Message, Type string
			Param         any
			Code          any
		}
	}
	err := json.Unmarshal(b, &e)
	text := func(v any) string { s, _ := v.(string); return s }
	if err != nil || got != status || text(e.Error.Param) != param || code != "" && text(e.Error.Code) != code ||
		e.Error.Message == "" || e.Error.Type == "" {
		r.t.Errorf("POST %s %.200v: %d %s; want %d, param %q, code %q", path, body, got, b, status, param, code)
	}
	return e.Error.Message
}

// events sends a body with stream set and gives the data of every event.
func (r *rig) events(path string, body fieldsOf) (list []string) {
	r.t.Helper()
	body["stream"] = true
	status, h, b := r.do("POST", path, body)
	if status != http.StatusOK || !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		r.t.Fatalf("%v: %d %s %s", body, status, h.Get("Content-Type"), b)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			list = append(list, data)
		} else if lines.Text() != "" && !strings.HasPrefix(lines.Text(), ":") {
			r.t.Fatalf("a line that is no event: %q", lines.Text())
		}
	}
	return list
}

// until waits for ok, and fails if that takes longer than any machine needs.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// quiet waits until nothing runs and reports what is left if it does not come to that.
func (r *rig) quiet() {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		st := r.model.Engine.Stats()
		waiting, tokens := r.model.gate.load()
		inFlight := r.inFlight()
		if st.Running+st.Waiting+waiting+tokens+inFlight == 0 && st.FreePages == st.Pages &&
			r.model.gate.free == r.model.gate.room {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("left: %+v, %d waiting with %d tokens, %d in flight", st, waiting, tokens, inFlight)
		}
	}
}

func TestRoutesAnswer(t *testing.T) {
	r := newRig(t, setup{})
	for _, path := range []string{"/", "/health", "/v1/health", "/livez", "/readyz", "/v1/models", "/v1/models/tiny",
		"/metrics", "/version", "/openapi.json", "/tokenizer_info"} {
		if status, h, b := r.do("GET", path, nil); status != http.StatusOK ||
			h.Get("X-Request-Id") == "" || len(b) == 0 {
			t.Errorf("GET %s: %d %s", path, status, b)
		}
	}
	var c completionReply
	r.post("/v1/completions", fieldsOf{"prompt": "hello", "max_tokens": 5, "temperature": 0}, &c)
	if len(c.Choices) != 1 || c.Usage.Completion != 5 || c.Usage.Prompt != 5 || *c.Choices[0].Reason != "length" {
		t.Errorf("%+v", c)
	}
	var chat chatReply
	r.post("/v1/chat/completions", fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "hi"}}, "max_tokens": 5},
		&chat)
	if len(chat.Choices) != 1 || chat.Choices[0].Message.Content == nil || chat.Object != "chat.completion" {
		t.Errorf("%+v", chat)
	}
	list := r.events("/v1/chat/completions",
		fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "hi"}}, "max_tokens": 5})
	if n := len(list); n < 4 || list[n-1] != "[DONE]" || !strings.Contains(list[0], `"role":"assistant"`) ||
		!strings.Contains(list[n-2], `"finish_reason":"length"`) {
		t.Errorf("%q", list)
	}
	r.quiet()
}
