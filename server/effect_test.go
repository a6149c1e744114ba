package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/infer"
)

// sampled asks for a completion with some fields changed; ids are its tokens.
func (r *rig) sampled(change fieldsOf) (ids string, c completionReply) {
	r.t.Helper()
	body := fieldsOf{"prompt": "abc", "max_tokens": 24, "temperature": 1, "seed": 1, "ignore_eos": true, "logprobs": 0}
	maps.Copy(body, change)
	r.post("/v1/completions", body, &c)
	return strings.Join(c.Choices[0].Logprobs.Tokens, "|"), c
}

// TestFieldsTakeEffect: every sampling field of a request changes what it is for. A field that was read and dropped
// would pass every other test.
func TestFieldsTakeEffect(t *testing.T) {
	r := newRig(t, setup{})
	plain, _ := r.sampled(nil)
	greedy, _ := r.sampled(fieldsOf{"temperature": 0})
	same := func(want string, change fieldsOf) {
		t.Helper()
		if got, _ := r.sampled(change); got != want {
			t.Errorf("%v: %s, want %s", change, got, want)
		}
	}
	other := func(than string, change fieldsOf) {
		t.Helper()
		if got, _ := r.sampled(change); got == than {
			t.Errorf("%v changes nothing: %s", change, got)
		}
	}
	same(plain, nil)
	same(greedy, fieldsOf{"temperature": 0, "seed": 9})
	other(plain, fieldsOf{"temperature": 0})
	other(plain, fieldsOf{"seed": 2})
	same(greedy, fieldsOf{"top_k": 1})
	same(greedy, fieldsOf{"top_p": 1e-9})
	same(greedy, fieldsOf{"min_p": 1})
	same(strings.TrimSuffix(strings.Repeat("A|", 24), "|"), fieldsOf{"logit_bias": fieldsOf{"65": 100}})
	// A bias that alone gives the same token forever, and penalties that end that.
	again := fieldsOf{"temperature": 0, "logit_bias": fieldsOf{"65": 1.5}}
	forever, _ := r.sampled(again)
	for name, v := range map[string]float64{"presence_penalty": 2, "frequency_penalty": 2, "repetition_penalty": 1e6} {
		change := maps.Clone(again)
		change[name] = v
		other(forever, change)
	}
	r.quiet()
}

// TestEndsTakeEffect: the fields that say where a text ends.
func TestEndsTakeEffect(t *testing.T) {
	r := newRig(t, setup{})
	if _, c := r.sampled(fieldsOf{"max_tokens": 7}); c.Usage.Completion != 7 || *c.Choices[0].Reason != "length" {
		t.Errorf("max_tokens: %+v", c.Usage)
	}
	ends := fieldsOf{"logit_bias": fieldsOf{"256": 100}, "ignore_eos": false}
	if _, c := r.sampled(ends); c.Usage.Completion != 1 || *c.Choices[0].Reason != "stop" {
		t.Errorf("a text that ends at once: %+v", c.Usage)
	}
	ends["min_tokens"] = 5
	if _, c := r.sampled(ends); c.Usage.Completion != 6 || *c.Choices[0].Reason != "stop" {
		t.Errorf("min_tokens: %+v", c.Usage)
	}
	ends["ignore_eos"] = true
	if _, c := r.sampled(ends); c.Usage.Completion != 24 || *c.Choices[0].Reason != "length" {
		t.Errorf("ignore_eos: %+v", c.Usage)
	}
	always := fieldsOf{"65": 100}
	if _, c := r.sampled(fieldsOf{"logit_bias": always, "stop_token_ids": []int{65}}); c.Usage.Completion != 1 ||
		*c.Choices[0].Reason != "stop" {
		t.Errorf("stop_token_ids: %+v", c)
	}
	if _, c := r.sampled(fieldsOf{"logit_bias": always, "stop": "AAA"}); c.Choices[0].Text != "" ||
		c.Usage.Completion != 3 || *c.Choices[0].Reason != "stop" {
		t.Errorf("stop: %+v", c)
	}
	r.quiet()
}

// TestReplyFieldsTakeEffect: the fields that say what is in a reply.
func TestReplyFieldsTakeEffect(t *testing.T) {
	r := newRig(t, setup{})
	greedy, _ := r.sampled(fieldsOf{"temperature": 0})
	first := strings.Split(greedy, "|")[0]
	if _, c := r.sampled(fieldsOf{"n": 3}); len(c.Choices) != 3 || c.Choices[0].Text == c.Choices[1].Text ||
		c.Choices[1].Text == c.Choices[2].Text {
		t.Errorf("n: %+v", c.Choices)
	}
	if _, c := r.sampled(fieldsOf{"echo": true}); !strings.HasPrefix(c.Choices[0].Text, "abc") ||
		len(c.Choices[0].Logprobs.Tokens) != 27 || c.Choices[0].Logprobs.Logprob[0] != nil {
		t.Errorf("echo: %+v", c.Choices)
	}
	if _, c := r.sampled(fieldsOf{"logprobs": 4, "temperature": 0}); len(c.Choices[0].Logprobs.Top[3]) < 4 ||
		c.Choices[0].Logprobs.Tokens[0] != first {
		t.Errorf("logprobs: %+v", c.Choices[0].Logprobs)
	}
	r.refused("/v1/completions", fieldsOf{"prompt": "x", "skip_special_tokens": false}, http.StatusBadRequest,
		"skip_special_tokens", "")
	r.quiet()
}

// TestCachedTokens: usage tells how much of a prompt was in the cache, and a salt separates what would be shared.
func TestCachedTokens(t *testing.T) {
	r := newRig(t, setup{})
	r.model.Print = "fp_test"
	body := fieldsOf{"prompt": strings.Repeat("0123456789", 6), "max_tokens": 1}
	for i, c := range []struct {
		salt string
		want int
	}{{"", 0}, {"", 48}, {"other", 0}, {"other", 48}} {
		if c.salt != "" {
			body["cache_salt"] = c.salt
		}
		var reply completionReply
		r.post("/v1/completions", body, &reply)
		if got := reply.Usage.Details.Cached; got != c.want || reply.Print != "fp_test" {
			t.Errorf("request %d: %d cached tokens, want %d; fingerprint %q", i, got, c.want, reply.Print)
		}
	}
}

// TestChatFields: what a chat adds to the sampling fields.
func TestChatFields(t *testing.T) {
	const template = `{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if mood %}{{ mood }}{% endif %}{% if add_generation_prompt %}[assistant:{% endif %}`
	r := newRig(t, setup{template: template})
	say := []fieldsOf{{"role": "developer", "content": "be"},
		{"role": "user", "content": []fieldsOf{{"type": "text", "text": "h"}, {"type": "text", "text": "i"}}}}
	prompt := func(more fieldsOf) string {
		t.Helper()
		body := fieldsOf{"messages": say}
		maps.Copy(body, more)
		var ids struct{ Tokens []int32 }
		r.post("/tokenize", body, &ids)
		var chat chatReply
		body["max_completion_tokens"], body["seed"] = 3, 1 // another seed might end the answer early
		r.post("/v1/chat/completions", body, &chat)
		if chat.Usage.Prompt != len(ids.Tokens) || chat.Usage.Completion != 3 {
			t.Errorf("%v: %+v, /tokenize counts %d", more, chat.Usage, len(ids.Tokens))
		}
		var text struct{ Prompt string }
		r.post("/detokenize", fieldsOf{"tokens": ids.Tokens}, &text)
		return text.Prompt
	}
	for want, more := range map[string]fieldsOf{
		"[system:be][user:hi][assistant:":     nil,
		"[system:be][user:hi]":                {"add_generation_prompt": false},
		"[system:be][user:hi]grim[assistant:": {"chat_template_kwargs": fieldsOf{"mood": "grim"}},
		"[system:be][user:hi": {"continue_final_message": true,
			"messages": []fieldsOf{say[0], {"role": "user", "content": "hi"}}},
		"[user:hi][assistant:so][user:hi": {"continue_final_message": true,
			"messages": []fieldsOf{{"role": "user", "content": "hi"}, {"role": "assistant", "content": "so"},
				{"role": "user", "content": "hi"}}},
		"[user: so it is": {"continue_final_message": true,
			"messages": []fieldsOf{{"role": "user", "content": " so it is \n"}}}, // templates may trim
		"[user:assistant": {"continue_final_message": true,
			"messages": []fieldsOf{{"role": "user", "content": "assistant"}}}, // as what begins an answer does
		"[system:be][assistant:so][assistant:": {"messages": []fieldsOf{say[0],
			{"role": "assistant", "content": "so"}}},
	} {
		if got := prompt(more); got != want {
			t.Errorf("%v: %q, want %q", more, got, want)
		}
	}
	var chat chatReply
	r.post("/v1/chat/completions", fieldsOf{"messages": say, "max_tokens": 2, "seed": 1, "logprobs": true,
		"top_logprobs": 3}, &chat)
	if l := chat.Choices[0].Logprobs; l == nil || len(l.Content) != 2 || len(l.Content[0].Top) != 3 ||
		len(l.Content[0].Bytes) == 0 {
		t.Errorf("%+v", chat.Choices[0].Logprobs)
	}
	list := r.events("/v1/chat/completions",
		fieldsOf{"messages": say, "max_tokens": 2, "seed": 1, "stream_options": fieldsOf{"include_usage": true}})
	var last chatReply
	if err := json.Unmarshal([]byte(list[len(list)-2]), &last); err != nil || len(last.Choices) != 0 ||
		last.Usage == nil || last.Usage.Completion != 2 {
		t.Errorf("the last event but one: %s", list[len(list)-2])
	}
}

// TestTokenizerRoutes: the three requests that lm-evaluation-harness's remote tokenizer makes, and llama.cpp's names.
func TestTokenizerRoutes(t *testing.T) {
	r := newRig(t, setup{})
	var info map[string]any
	status, _, b := r.do("GET", "/tokenizer_info", nil)
	if err := json.Unmarshal(b, &info); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, b)
	}
	for _, name := range []string{"eos_token", "bos_token", "pad_token", "chat_template", "vocab_size",
		"max_model_len", "model"} {
		if _, ok := info[name]; !ok {
			t.Errorf("/tokenizer_info has no %s: %s", name, b)
		}
	}
	type tokens struct {
		Tokens []int32
		Count  int
		Len    int      `json:"max_model_len"`
		Strs   []string `json:"token_strs"`
	}
	for _, body := range []fieldsOf{
		{"prompt": "hé", "add_special_tokens": false, "return_token_strs": true},
		{"content": "hé", "with_pieces": true}, {"prompt": "hé", "return_token_strs": true},
	} {
		var got tokens
		r.post("/tokenize", body, &got)
		if got.Count != 3 || got.Len != 128 || !slices.Equal(got.Tokens, []int32{'h', 0xc3, 0xa9}) ||
			len(got.Strs) != 3 || got.Strs[0] != "h" {
			t.Errorf("%v: %+v", body, got)
		}
		var back struct{ Prompt, Content string }
		r.post("/detokenize", fieldsOf{"tokens": got.Tokens}, &back)
		if back.Prompt != "hé" || back.Content != "hé" {
			t.Errorf("%+v", back)
		}
	}
	r.refused("/tokenize", fieldsOf{"prompt": 3}, http.StatusBadRequest, "prompt", "")
	r.refused("/tokenize", fieldsOf{"prompt": "x", "model": "nobody"}, http.StatusNotFound, "model", "model_not_found")
	if status, _, b := r.do("GET", "/tokenizer_info?model=nobody", nil); status != http.StatusNotFound {
		t.Errorf("%d %s", status, b)
	}
}

// TestMetrics: every metric of the protocol has the value of what was done, and no label tells what a client wrote.
func TestMetrics(t *testing.T) {
	r := newRig(t, setup{Config: Config{Keys: keys(t, "sk-secret-key")}})
	r.key = "sk-secret-key"
	for i := range 3 {
		r.post("/v1/completions", fieldsOf{"prompt": "secret prompt", "max_tokens": 5, "seed": i, "ignore_eos": true},
			new(completionReply))
	}
	r.post("/v1/completions", fieldsOf{"prompt": "x", "max_tokens": 5, "logit_bias": fieldsOf{"256": 100}},
		new(completionReply))
	r.refused("/v1/completions", fieldsOf{"prompt": "x", "model": "secret-model"}, http.StatusNotFound, "model",
		"model_not_found")
	r.do("GET", "/secret-path", nil)
	r.quiet()
	_, h, b := r.do("GET", "/metrics", nil)
	text := string(b)
	for _, line := range []string{
		`prompt_tokens_total{model_name="tiny"} 40`, `generation_tokens_total{model_name="tiny"} 16`,
		`request_success_total{finished_reason="length",model_name="tiny"} 3`,
		`request_success_total{finished_reason="stop",model_name="tiny"} 1`,
		`num_requests_running{model_name="tiny"} 0`, `num_requests_waiting{model_name="tiny"} 0`,
		`kv_cache_usage_perc{model_name="tiny"} 0`,
		`time_to_first_token_seconds_count{model_name="tiny"} 4`,
		`inter_token_latency_seconds_count{model_name="tiny"} 12`,
		`request_time_per_output_token_seconds_count{model_name="tiny"} 3`,
		`e2e_request_latency_seconds_count{model_name="tiny"} 4`,
		`request_queue_time_seconds_count{model_name="tiny"} 4`, `requests_cancelled_total 0`,
		`http_requests_total{code="200",route="POST /v1/completions"} 4`,
		`http_requests_total{code="404",route="POST /v1/completions"} 1`,
		`http_requests_total{code="404",route="other"} 1`,
	} {
		if !strings.Contains(text, "\n"+namespace+"_"+line+"\n") {
			t.Errorf("there is no line %s: %s", line,
				regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(namespace+"_"+strings.SplitN(line, "{",
					2)[0])+`.*$`).FindAllString(text, 4))
		}
	}
	if strings.Contains(text, "secret") || !strings.HasPrefix(h.Get("Content-Type"), "text/plain") ||
		!strings.Contains(text, "\ngo_goroutines ") {
		t.Error(fmt.Sprint("a label tells what a client wrote, or the format is wrong: ", h.Get("Content-Type")))
	}
}

// What a request generated is counted whether it ends well or not; times and reasons are of those that end well.
func TestWatchCounts(t *testing.T) {
	r := newRig(t, setup{})
	count := func(name string) string {
		_, _, b := r.do("GET", "/metrics", nil)
		m := regexp.MustCompile(`(?m)^` + namespace + "_" + name + `(?:\{[^}]*\})? (.*)$`).FindStringSubmatch(string(b))
		if m == nil {
			return ""
		}
		return m[1]
	}
	for i, err := range []error{nil, errors.New("failed"), context.Canceled} {
		w := r.metrics.watch(&Model{ID: "tiny"}, 7)
		w.admitted()
		for range 3 {
			w.event(0, infer.Event{ID: 1})
			w.event(1, infer.Event{ID: 1})
			w.event(0, infer.Event{ID: 1, Prompt: true}) // neither an echo nor the end is generated
			w.event(0, infer.Event{ID: -1})
		}
		w.finished([]*choice{{reason: "length"}, {reason: "stop"}}, err)
		if got, want := count("generation_tokens_total"), fmt.Sprint(6*(i+1)); got != want {
			t.Errorf("%v: %s tokens, want %s", err, got, want)
		}
		for name, want := range map[string]string{"e2e_request_latency_seconds_count": "1",
			"request_time_per_output_token_seconds_count": "1", "request_success_total": "1"} {
			if got := count(name); got != want {
				t.Errorf("%v: %s is %s, want %s", err, name, got, want)
			}
		}
	}
	if first, between := count("time_to_first_token_seconds_count"),
		count("inter_token_latency_seconds_count"); first != "3" || between != "12" ||
		count("prompt_tokens_total") != "21" {
		t.Errorf("%s first tokens, %s that follow; want 3 and 12", first, between)
	}
}
