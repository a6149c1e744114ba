package server

import (
	"net/http"
	"strings"
	"testing"
)

// What is wrong with a field, in whole sentences: its name, what was sent and what would be right.
func TestFieldsInWords(t *testing.T) {
	r := newRig(t, setup{})
	for path, list := range wrongFields {
		for _, c := range list {
			param, _, _ := strings.Cut(c[1], ":")
			if got := r.refused(path, c[0], http.StatusBadRequest, param, ""); got != c[1] {
				t.Errorf("%s %s: %s, want %s", path, c[0], got, c[1])
			}
		}
	}
	if got := r.refused("/v1/completions", `{"model":"other","prompt":"x"}`, http.StatusNotFound, "model",
		"model_not_found"); got != `the model "other" does not exist; there are: tiny` {
		t.Error(got)
	}
}

// wrongFields are bodies by route, with what is said of them.
var wrongFields = map[string][][2]string{
	"/v1/completions": {
		{`{}`, `prompt: is missing, must be a string, a list of strings, a list of token ids or a list of those`},
		{`{"prompt":[]}`, `prompt: is an empty list, must have at least one entry`},
		{`{"prompt":[[]]}`, `prompt: has no tokens, must have at least one`},
		{`{"prompt":[1,"a"]}`,
			`prompt: is [1,"a"], must be a string, a list of strings, a list of token ids or a list of those`},
		{`{"prompt":[-1]}`, `prompt: id -1 at position 0 is not in the vocabulary of 260`},
		{`{"prompt":[7,260]}`, `prompt: id 260 at position 1 is not in the vocabulary of 260`},
		{`{"prompt":{}}`, `prompt: is {}, must be a string, a list of strings, a list of token ids or a list of those`},
		{`{"prompt":"x","suffix":"y"}`, `suffix: is "y", filling in between two texts is not done here`},
		{`{"prompt":"x","n":2,"best_of":5}`,
			`best_of: is 5, must equal n: choosing among more answers than are returned is not done here`},
		{`{"prompt":"x","max_tokens":0}`, `max_tokens: is 0, must be positive unless echo is set`},
		{`{"prompt":"x","max_tokens":-1}`, `max_tokens: is -1, must be between 0 and 2147483647`},
		{`{"prompt":"x","tempature":1}`, `tempature: this field is unknown; did you mean temperature?`},
		{`{"prompt":"x","temperature":101}`, `temperature: is 101, must be between 0 and 100`},
		{`{"prompt":"x","temperature":"hot"}`, `temperature: is "hot", must be a number`},
		{`{"prompt":"x","echo":1}`, `echo: is 1, must be true or false`},
		{`{"prompt":"x","n":17}`, `n: is 17, must be between 1 and 16`},
		{`{"prompt":"x","n":1.5}`, `n: is 1.5, must be a whole number`},
		{`{"prompt":"x","stop":""}`, `stop: entry 0 has 0 bytes, must have between 1 and 256`},
		{`{"prompt":"x","stop":[3]}`, `stop: is [3], must be a string or a list of strings`},
		{`{"prompt":"x","stop":["a","b","c","d","e"]}`, `stop: has 5 entries, at most 4 are allowed`},
		{`{"prompt":"x","stop_token_ids":[5,-5]}`, `stop_token_ids: entry 1 is -5, outside the vocabulary of 260`},
		{`{"prompt":"x","stop_token_ids":"a"}`, `stop_token_ids: is "a", must be a list of token ids`},
		{`{"prompt":"x","logit_bias":{"x":1}}`, `logit_bias: "x" is not a token id below 260`},
		{`{"prompt":"x","logit_bias":{"7":101}}`,
			`logit_bias: the bias of token 7 is 101, must be between -100 and 100`},
		{`{"prompt":"x","logit_bias":{"7":null}}`, `logit_bias: the bias of token 7 is null, must be a number`},
		{`{"prompt":"x","logit_bias":3}`, `logit_bias: is 3, must be an object from token ids to numbers`},
		{`{"prompt":"x","skip_special_tokens":false}`,
			`skip_special_tokens: is false, special tokens are never part of the text here; leave it true`},
		{`{"prompt":"x","stream_options":{"include_usage":true}}`, `stream_options: needs stream`},
		{`{"prompt":"x","stream":true,"stream_options":3}`, `stream_options: is 3, must be an object`},
		{`{"prompt":"x","stream":true,"stream_options":{"x":1}}`, `stream_options: x: this field is unknown`},
		{`{"prompt":"x","response_format":{"type":"xml"}}`,
			`response_format: type: is "xml", must be text, json_object or json_schema`},
		{`{"prompt":"x","response_format":{"type":"json_schema"}}`,
			`response_format: json_schema: must be an object with a schema`},
		{`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"name":"a"}}}`,
			`response_format: json_schema: schema: is missing`},
		{`{"prompt":"x","response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"pattern":"a"}}}}`,
			`response_format: schema: "pattern" is not supported here`},
		{`{"prompt":"x","response_format":{"type":"json_object"},"stop":"a"}`,
			`stop: cannot be used with response_format: it would cut the JSON`},
		{`{"prompt":"x","response_format":7}`, `response_format: is 7, must be an object`},
		{`{"prompt":"x","logprobs":21}`, `logprobs: is 21, must be between 0 and 20`},
		{`{"prompt":["x","y"],"n":16,"max_tokens":128,"truncate_prompt_tokens":129}`,
			`truncate_prompt_tokens: is 129, must be between 1 and 128`},
		{`{"model":3,"prompt":"x"}`, `model: is 3, must be a string`},
	},
	"/v1/chat/completions": {
		{`{}`, `messages: is missing or empty, must be a list of messages`},
		{`{"messages":[3]}`, `messages: entry 0 is 3, must be an object with role and content`},
		{`{"messages":[{"role":"x","content":"y"}]}`,
			`messages: entry 0: role: is "x", must be one of system, developer, user, assistant, tool`},
		{`{"messages":[{"role":"user"}]}`,
			`messages: entry 0: content: is missing, must be a string or a list of text parts`},
		{`{"messages":[{"role":"user","content":3}]}`,
			`messages: entry 0: content: is 3, must be a string or a list of text parts`},
		{`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
			`messages: entry 0: content: has a part of type "image_url"; only text is read here`},
		{`{"messages":[{"role":"user","content":"x"},{"role":"user","content":"x","mood":1}]}`,
			`messages: entry 1: mood: this field is unknown`},
		{`{"messages":[{"role":"user","content":"x"}],"top_logprobs":3}`, `top_logprobs: needs logprobs`},
		{`{"messages":[{"role":"user","content":"x"}],"max_tokens":0}`, `max_tokens: is 0, must be positive`},
		{`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"x"}]}`,
			`tools: each must be {"type":"function","function":{"name":…}}, with a name of letters, digits, _ and -`},
		{`{"messages":[{"role":"user","content":"x"}],"tools":3}`, `tools: must be a list of at most 128 tools`},
		{`{"messages":[{"role":"user","content":"x"}],"tool_choice":"required"}`, `tool_choice: needs tools`},
		{`{"messages":[{"role":"user","content":"x"}],"functions":[]}`,
			`functions: is [], is the old form of tools; use that`},
		{`{"messages":[{"role":"user","content":"x"}],"modalities":["audio"]}`,
			`modalities: is ["audio"], only text is made here`},
		{`{"messages":[{"role":"assistant","content":"x","tool_calls":[{"id":"1"}]}]}`,
			`messages: entry 0: tool_calls: entry 0 has no function`},
	},
	"/v1/embeddings": {
		{`{"input":[[]]}`, `input: has no tokens, must have at least one`},
		{`{"input":"x","dimensions":3}`, `dimensions: is 3, the model has 16`},
		{`{"input":"x","encoding_format":"hex"}`, `encoding_format: is "hex", must be float or base64`},
	},
	"/v1/attention": {
		{`{"prompt":[[]]}`, `prompt: has no tokens, must have at least one`},
		{`{"prompt":["a","b"]}`, `prompt: is a list of 2, must be one text or one list of token ids`},
		{`{"prompt":"a","interventions":[{"x":1}]}`,
			`interventions: must be a list of objects with layers, heads, lambda, second, seed and knockout: unknown field "x"`},
		{`{"prompt":"a","interventions":[null]}`,
			`interventions: must be a list of objects with layers, heads, lambda, second, seed and knockout, none of them null`},
		{`{"prompt":"a","layers":"all"}`, `layers: is "all", must be a list of whole numbers`},
		{`{"prompt":"a","maps":3}`, `maps: is 3, must be a list of "a1", "a2" and "diff"`},
		{`{"prompt":"a","topk":65}`, `topk: is 65, must be between 1 and 64`},
	},
	"/tokenize": {
		{`{}`, `prompt: is missing, must be a string (or give messages)`},
	},
	"/detokenize": {
		{`{}`, `tokens: is missing, must be a list of token ids`},
		{`{"tokens":[5,-1]}`, `tokens: id -1 at position 1 is not in the vocabulary of 260`},
		{`{"tokens":"a"}`, `tokens: is "a", must be a list of token ids`},
	},
}
