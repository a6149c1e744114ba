package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strings"
	"testing"
)

// Numbers in any notation, and how a wrong or long one is shown.
func TestNumbersInAnyNotation(t *testing.T) {
	for text, want := range map[string]int64{"3": 3, " 3 ": 3, "3.0": 3, "3e0": 3, "0.3e1": 3,
		"-3": -3, "-3.0": -3, "1e2": 100, "9007199254740992.0": 1 << 53, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64} {
		if got, ok := integer([]byte(text)); !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"3.5", "1e-1", "9223372036854775808", "1e300", "true", `"3"`, "", "+3", "null1"} {
		if got, ok := integer([]byte(text)); ok {
			t.Errorf("%s is %d", text, got)
		}
	}
	for n, want := range map[int]string{59: strings.Repeat("é", 29) + "x", 60: strings.Repeat("é", 30),
		61: strings.Repeat("é", 30) + "…", 62: strings.Repeat("é", 30) + "…"} {
		text := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		if got := excerpt([]byte(text)); got != want {
			t.Errorf("%d bytes are shown as %q, want %q", n, got, want)
		}
	}
	long := "x" + strings.Repeat("é", 60) // the hundredth byte is the first half of a character
	o, err := parseObject(fmt.Appendf(nil, `{%q:1}`, long))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.finish(); err == nil || err.Error() != "x"+strings.Repeat("é", 49)+": this field is unknown" {
		t.Errorf("%v", err)
	}
}

var (
	oneMessage = []fieldsOf{{"role": "user", "content": "hi"}}
	oneTool    = []any{fieldsOf{"type": "function", "function": fieldsOf{"name": "f"}}}
)

// bracketed writes each message in brackets, with the argument x of its first call, and T where there are tools.
const bracketed = "{% for m in messages %}[{{ m.content }}{% if m.tool_calls %}{{ " +
	"m.tool_calls[0].function.arguments.x }}{% endif %}]{% endfor %}{% if tools %}T{% endif %}"

// wrongChats are fields of formats, tools and conversations that are wrong.
var wrongChats = []struct {
	more        fieldsOf
	param, says string
}{
	{fieldsOf{"continue_final_message": true, "messages": []fieldsOf{{"role": "assistant",
		"tool_calls": []any{fieldsOf{"function": fieldsOf{"name": "f"}}}}}}, "continue_final_message",
		"needs a last message with text"},
	{fieldsOf{"messages": []fieldsOf{{"role": "assistant", "tool_calls": []any{fieldsOf{"id": "x"}}}}}, "messages",
		"entry 0 has no function"},
	{fieldsOf{"tools": oneTool, "tool_choice": "required"}, "tool_choice", "only none and auto are served"},
	{fieldsOf{"tools": oneTool, "tool_choice": fieldsOf{"type": "function"}}, "tool_choice", "only none and auto"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_object"}, "stop_token_ids": []int{1}}, "stop",
		"cannot be used with response_format"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_object"},
		"stop": "x"}, "stop", "cannot be used with response_format"},
	{fieldsOf{"tool_choice": "required"}, "tool_choice", "needs tools"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_schema"}}, "response_format",
		"must be an object with a schema"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_schema", "json_schema": 3}},
		"response_format", "must be an object with a schema"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_schema", "json_schema": fieldsOf{"name": "x"}}},
		"response_format", "schema: is missing"},
	{fieldsOf{"response_format": fieldsOf{"type": "json_schema",
		"json_schema": fieldsOf{"schema": true, "nmae": 1}}}, "response_format", "did you mean name?"},
	{fieldsOf{"response_format": fieldsOf{"type": "text", "x": 1}}, "response_format", "this field is unknown"},
	{fieldsOf{"response_format": "text"}, "response_format", "must be an object"},
	{fieldsOf{"stop_token_ids": []int{1, 2, 3}}, "stop_token_ids", "has 3 entries, at most 2 are allowed"},
	{fieldsOf{"stop_token_ids": []int{260}}, "stop_token_ids", "outside the vocabulary of 260"},
	{fieldsOf{"functions": []any{}}, "functions", "old form of tools"},
	{fieldsOf{"function_call": "auto"}, "function_call", "old form of tool_choice"},
	{fieldsOf{"modalities": []string{"audio"}}, "modalities", "only text"},
	{fieldsOf{"max_tokens": 0}, "max_tokens", "is 0, must be positive"},
	{fieldsOf{"stream_options": fieldsOf{"x": 1}, "stream": true}, "stream_options", "unknown"},
	{fieldsOf{"logit_bias": fieldsOf{"05": 1}}, "logit_bias", "not a token id"},
	{fieldsOf{"logit_bias": fieldsOf{"5": nil}}, "logit_bias", "is null"},
	{fieldsOf{"chat_template_kwargs": fieldsOf{"m": []int{1}}}, "chat_template_kwargs", "neither a string"},
	{fieldsOf{"chat_template_kwargs": fieldsOf{"absent": 1}}, "chat_template_kwargs", "not a variable"},
	{fieldsOf{"messages": []any{"x"}}, "messages", "entry 0 is"},
	{fieldsOf{"messages": []fieldsOf{{"role": "user", "content": "x", "colour": 1}}}, "messages",
		"entry 0: colour: this field is unknown"},
}

// Fields of formats, tools and conversations that are wrong, each by the words a client reads.
func TestChatRefusals(t *testing.T) {
	r := newRig(t, setup{template: bracketed, Config: Config{Limits: Limits{Biases: 2}}})
	for _, c := range wrongChats {
		body := fieldsOf{"messages": oneMessage, "max_tokens": 2}
		maps.Copy(body, c.more)
		if msg := r.refused("/v1/chat/completions", body, http.StatusBadRequest, c.param,
			""); !strings.Contains(msg, c.says) {
			t.Errorf("%v: %q, want %q", c.more, msg, c.says)
		}
	}
	other := newRig(t, setup{template: "{% for m in messages %}{{ m.content | upper }}{% endfor %}"})
	if msg := other.refused("/v1/chat/completions", fieldsOf{"messages": oneMessage, "continue_final_message": true},
		http.StatusBadRequest, "continue_final_message", ""); !strings.Contains(msg,
		"does not write the last message as it was sent") {
		t.Errorf("%q", msg)
	}
}

// Fields of conversations that are accepted, and the tokens that they become.
func TestChatPrompts(t *testing.T) {
	r := newRig(t, setup{template: bracketed, Config: Config{Limits: Limits{Biases: 2}}})
	for _, c := range []struct {
		more fieldsOf
		want string
	}{
		{fieldsOf{}, "[hi]"}, {fieldsOf{"truncate_prompt_tokens": 3}, "hi]"},
		{fieldsOf{"truncate_prompt_tokens": 4}, "[hi]"}, {fieldsOf{"truncate_prompt_tokens": 5}, "[hi]"},
		{fieldsOf{"response_format": fieldsOf{"type": "text"}, "stop": "x"}, "[hi]"},
		{fieldsOf{"tools": oneTool}, "[hi]T"},
		{fieldsOf{"tools": oneTool, "tool_choice": "auto"}, "[hi]T"},
		{fieldsOf{"tools": oneTool, "tool_choice": "none"}, "[hi]"},
		{fieldsOf{"tools": []any{}, "tool_choice": "required"}, "[hi]"},
		{fieldsOf{"tool_choice": "none"}, "[hi]"}, {fieldsOf{"tool_choice": "auto"}, "[hi]"},
		{fieldsOf{"messages": []fieldsOf{{"role": "assistant", "content": "a",
			"tool_calls": []any{fieldsOf{"function": fieldsOf{"name": "f", "arguments": `{"x":7}`}}}}}}, "[a7]"},
		{fieldsOf{"add_special_tokens": true}, "[hi]"},
		{fieldsOf{"modalities": []string{"text"}, "user": "u", "max_tokens": 2.0}, "[hi]"},
		{fieldsOf{"stop_token_ids": []int{1, 2}}, "[hi]"},
	} {
		body := fieldsOf{"messages": oneMessage, "max_tokens": 2, "ignore_eos": true, "temperature": 0,
			"logprobs": true, "stop": []string{"\x00"}}
		maps.Copy(body, c.more)
		var reply chatReply
		var same completionReply
		r.post("/v1/chat/completions", body, &reply)
		r.post("/v1/completions", fieldsOf{"prompt": c.want, "max_tokens": 2, "ignore_eos": true, "temperature": 0,
			"logprobs": 0}, &same)
		if reply.Usage.Prompt != len(c.want) || reply.Usage.Completion < 1 ||
			reply.Choices[0].Logprobs.Content[0].Logprob != *same.Choices[0].Logprobs.Logprob[0] {
			t.Errorf("%v: %+v, want the prompt %q", c.more, reply.Usage, c.want)
		}
	}
}

// With tools the text of a stream is held back to its end, where it is known what it is; tokens come as they are made.
func TestToolStreams(t *testing.T) {
	r := newRig(t, setup{})
	base := fieldsOf{"messages": oneMessage, "max_tokens": 6, "temperature": 0, "tools": oneTool,
		"logit_bias": fieldsOf{"65": 100}}
	for _, logprobs := range []bool{false, true} {
		body := maps.Clone(base)
		body["logprobs"] = logprobs
		list := r.events("/v1/chat/completions", body)
		var text string
		tokens, withText := 0, 0
		for _, data := range list[:len(list)-1] {
			var v chatReply
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatal(err)
			}
			ch := v.Choices[0]
			if ch.Delta.Content != nil && *ch.Delta.Content != "" {
				withText++
				text += *ch.Delta.Content
				if ch.Reason == nil || *ch.Reason != "length" {
					t.Errorf("text before the end: %s", data)
				}
			}
			if ch.Logprobs != nil {
				tokens += len(ch.Logprobs.Content)
			}
		}
		if text != "AAAAAA" || withText != 1 || tokens != map[bool]int{false: 0, true: 6}[logprobs] {
			t.Errorf("logprobs %v: %q in %d events, %d tokens", logprobs, text, withText, tokens)
		}
	}
}
