package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"antiphase/infer"
	"antiphase/tokenizer"
)

// formOf is a body for a model with its own defaults; no engine is needed to read it.
func formOf(t *testing.T, body string, defaults infer.Sampling) *form {
	t.Helper()
	o, err := parseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	l := DefaultLimits()
	return &form{o, &Model{ID: "m", Context: 128, Tokenizer: tokenizer.Bytes(), Defaults: defaults}, &l}
}

// Every sampling field has its own place: all of them with values of their own, all of them left out or null, in which
// case the model's defaults hold.
func TestSamplingFieldByField(t *testing.T) {
	defaults := infer.Sampling{Temperature: 0.25, TopK: 7, TopP: 0.5, MinP: 0.125, RepetitionPenalty: 1.5,
		StopIDs: []int32{9}}
	full := `{"temperature":0.75,"top_p":0.875,"min_p":0.0625,"top_k":3,"repetition_penalty":1.25,"presence_penalty":-1.5,
		"frequency_penalty":0.5,"ignore_eos":true,"min_tokens":4,"seed":-2,"stop":["x","yy"],"stop_token_ids":[5,6],
		"logit_bias":{"8":-3.5},"skip_special_tokens":true,"user":"u","store":true,"metadata":{},"service_tier":"auto",
		"safety_identifier":"s","prompt_cache_key":"k"}`
	o := formOf(t, full, defaults)
	want := infer.Sampling{Temperature: 0.75, TopP: 0.875, MinP: 0.0625, TopK: 3, RepetitionPenalty: 1.25,
		PresencePenalty: -1.5, FrequencyPenalty: 0.5, IgnoreEOS: true, MinTokens: 4, Seed: math.MaxUint64 - 1,
		Stop:    []string{"x", "yy"},
		StopIDs: []int32{5, 6}, Bias: []infer.TokenBias{{ID: 8, Bias: -3.5}}}
	if d := cmp.Diff(want, o.sampling()); d != "" || o.finish() != nil {
		t.Errorf("all given: %v %s", o.finish(), d)
	}
	names := []string{"temperature", "top_p", "min_p", "top_k", "repetition_penalty", "presence_penalty",
		"frequency_penalty", "ignore_eos", "min_tokens", "seed", "stop", "stop_token_ids", "logit_bias",
		"skip_special_tokens"}
	null := "{" + strings.Join(slices.Collect(func(yield func(string) bool) {
		for _, n := range names {
			if !yield(`"` + n + `":null`) {
				return
			}
		}
	}), ",") + "}"
	seeds := map[uint64]bool{}
	for _, body := range []string{"{}", null} {
		o := formOf(t, body, defaults)
		got := o.sampling()
		seeds[got.Seed] = true
		if got.Seed = 0; cmp.Diff(defaults, got) != "" || o.finish() != nil {
			t.Errorf("%s: %v %s", body, o.finish(), cmp.Diff(defaults, got))
		}
	}
	if len(seeds) != 2 {
		t.Error("two requests without a seed draw the same tokens")
	}
}

// Both sides of every range, with the field at fault.
func TestSamplingRanges(t *testing.T) {
	long := func(n int) string { return `"` + strings.Repeat("s", n) + `"` }
	for _, c := range []struct {
		field     string
		good, bad []string
	}{
		{"temperature", []string{"0", "100"}, []string{"-0.01", "100.01"}},
		{"top_p", []string{"0", "1"}, []string{"-0.01", "1.01"}},
		{"min_p", []string{"0", "1"}, []string{"-0.01", "1.01"}},
		{"top_k", []string{"-1", "2147483647", "3.0"}, []string{"-2", "2147483648", "1.5"}},
		{"repetition_penalty", []string{"1e-6", "1e6"}, []string{"0", "9e-7", "1000001"}},
		{"presence_penalty", []string{"-2", "2"}, []string{"-2.01", "2.01"}},
		{"frequency_penalty", []string{"-2", "2"}, []string{"-2.01", "2.01"}},
		{"ignore_eos", []string{"false"}, []string{"0", `"true"`}},
		{"min_tokens", []string{"0", "2147483647"}, []string{"-1", "2147483648"}},
		{"seed", []string{"-9223372036854775808", "9223372036854775807"}, []string{"9223372036854775808", "0.5"}},
		{"stop", []string{`"a"`, `[]`, `["a","b","c","d"]`, long(256)},
			[]string{`""`, `["a",""]`, `["a","b","c","d","e"]`, long(257), `{}`}},
		{"stop_token_ids", []string{"[]", "[0,259]"}, []string{"[260]", "[-1]", "5"}},
		{"logit_bias", []string{`{}`, `{"0":-100,"259":100}`},
			[]string{`{"260":1}`, `{"0":-100.1}`, `{"0":100.1}`, `[]`}},
		{"skip_special_tokens", []string{"true"}, []string{"false"}},
	} {
		for i, v := range append(slices.Clone(c.good), c.bad...) {
			o := formOf(t, fmt.Sprintf(`{%q:%s}`, c.field, v), infer.Sampling{})
			o.sampling()
			err, good := o.finish(), i < len(c.good)
			if (err == nil) != good || !good && o.err.Param != c.field {
				t.Errorf("%s %.40s: %v", c.field, v, err)
			}
		}
	}
	if p := formOf(t, `{"top_k":-1}`, infer.Sampling{TopK: 5}).sampling(); p.TopK != 0 {
		t.Errorf("top_k -1 is %d, want 0, which keeps all", p.TopK)
	}
	wide := func(n int) string { return `"` + strings.Repeat("é", n/2) + `"` } // lengths are of bytes
	for body, good := range map[string]bool{`{"stop":` + wide(256) + `}`: true, `{"stop":` + wide(258) + `}`: false,
		`{"stop":["a",` + wide(258) + `]}`: false} {
		o := formOf(t, body, infer.Sampling{})
		if o.sampling(); (o.finish() == nil) != good {
			t.Errorf("%.30s…: %v", body, o.finish())
		}
	}
	for body, good := range map[string]bool{`{"cache_salt":` + long(256) + `}`: true, `{"cache_salt":` + long(257) +
		`}`: false, `{}`: true,
		`{"cache_salt":` + wide(256) + `}`: true, `{"cache_salt":` + wide(258) + `}`: false} {
		o := formOf(t, body, infer.Sampling{})
		if o.salt(); (o.finish() == nil) != good {
			t.Errorf("%.30s…: %v", body, o.finish())
		}
	}
}

// The length of an answer under both names, of which the new one counts, and what a stream may ask for.
func TestLengthAndStreamFields(t *testing.T) {
	for body, want := range map[string]string{
		`{}`: "0 false", `{"max_tokens":3}`: "3 true", `{"max_completion_tokens":4}`: "4 true",
		`{"max_tokens":null}`:                        "0 false",
		`{"max_tokens":3,"max_completion_tokens":4}`: "4 true", `{"max_tokens":0}`: "0 true",
		`{"max_tokens":-1}`:         "refused",
		`{"max_tokens":2147483648}`: "refused", `{"max_tokens":3,"max_completion_tokens":null}`: "3 true",
	} {
		o := formOf(t, body, infer.Sampling{})
		n, given := o.maxTokens("max_tokens", "max_completion_tokens")
		got := fmt.Sprint(n, given)
		if o.finish() != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for body, want := range map[string]string{
		`{}`: "false false", `{"stream":true}`: "true false",
		`{"stream":true,"stream_options":{"include_usage":true}}`:                             "true true",
		`{"stream":true,"stream_options":{"include_usage":false,"include_obfuscation":true}}`: "true false",

		`{"stream":true,"stream_options":{}}`:   "true false",
		`{"stream":true,"stream_options":null}`: "true false",
		`{"stream_options":{}}`:                 "stream_options: needs stream",
		`{"stream":true,"stream_options":[]}`:   "stream_options: is [], must be an object",
		`{"stream":true,"stream_options":{"include_usage":1}}`: "stream_options: include_usage: is 1, must be " +
			"true or false",
		`{"stream":1}`: "stream: is 1, must be true or false",
	} {
		o := formOf(t, body, infer.Sampling{})
		got := fmt.Sprint(o.streaming())
		if err := o.finish(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// Of several wrong entries of an object the first by name is reported, each time the same, and biases keep that order.
func TestObjectsInOrder(t *testing.T) {
	var bad, good []string
	for i := range 8 {
		bad = append(bad, fmt.Sprintf(`"%d":1`, 907-i))
		good = append(good, fmt.Sprintf(`"%d":%d`, 17-i, i))
	}
	for range 5 {
		o := formOf(t, `{"logit_bias":{`+strings.Join(bad, ",")+`}}`, infer.Sampling{})
		if o.biases(); o.err == nil || o.err.Message != `logit_bias: "900" is not a token id below 260` {
			t.Fatalf("%v", o.err)
		}
		o = formOf(t, `{"chat_template_kwargs":{`+strings.Join(bad, ",")+`}}`, infer.Sampling{})
		if o.templateVars(); o.err == nil ||
			o.err.Message != `chat_template_kwargs: "900" is not a variable that the model's template has for this` {
			t.Fatalf("%v", o.err)
		}
		o = formOf(t, `{"logit_bias":{`+strings.Join(good, ",")+`}}`, infer.Sampling{})
		if o := formOf(t, `{`+strings.Join(bad, ",")+`}`, infer.Sampling{}); !strings.HasPrefix(o.finish().Error(),
			"900: this field is unknown") {
			t.Fatalf("%v", o.finish())
		}
		list := o.biases()
		if len(list) != 8 || list[0] != (infer.TokenBias{ID: 10, Bias: 7}) ||
			list[7] != (infer.TokenBias{ID: 17, Bias: 0}) {
			t.Fatalf("%v, %v", list, o.err)
		}
	}
}
