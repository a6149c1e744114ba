package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"antiphase/hf"
	"antiphase/infer"
)

func ptr[T any](v T) *T { return &v }

// What generation_config.json says is taken field by field where no flag was given, by generate and by serve.
func TestGenerationDefaults(t *testing.T) {
	plain := infer.Sampling{Temperature: 0.25, MaxTokens: 9}
	for name, x := range map[string]struct {
		g      *hf.Generation
		flags  []string
		want   infer.Sampling // of generate
		served infer.Sampling
	}{
		"none":  {nil, nil, plain, infer.Sampling{Temperature: 1}},
		"empty": {&hf.Generation{}, nil, plain, infer.Sampling{Temperature: 1}},
		"greedy": {&hf.Generation{Sample: ptr(false), Temperature: ptr(0.7)}, nil, infer.Sampling{MaxTokens: 9},
			infer.Sampling{}},
		"sampled": {&hf.Generation{Sample: ptr(true)}, nil, infer.Sampling{Temperature: 1, MaxTokens: 9},
			infer.Sampling{Temperature: 1}},
		"warm": {&hf.Generation{Sample: ptr(true), Temperature: ptr(0.7)}, nil,
			infer.Sampling{Temperature: 0.7, MaxTokens: 9}, infer.Sampling{Temperature: 0.7}},
		"top-k": {&hf.Generation{TopK: ptr(5)}, nil, infer.Sampling{Temperature: 0.25, MaxTokens: 9, TopK: 5},
			infer.Sampling{Temperature: 1, TopK: 5}},
		"top-p": {&hf.Generation{TopP: ptr(0.5)}, nil, infer.Sampling{Temperature: 0.25, MaxTokens: 9, TopP: 0.5},
			infer.Sampling{Temperature: 1, TopP: 0.5}},
		"min-p": {&hf.Generation{MinP: ptr(0.1)}, nil, infer.Sampling{Temperature: 0.25, MaxTokens: 9, MinP: 0.1},
			infer.Sampling{Temperature: 1, MinP: 0.1}},
		"repetition": {&hf.Generation{RepetitionPenalty: ptr(1.5)}, nil,
			infer.Sampling{Temperature: 0.25, MaxTokens: 9, RepetitionPenalty: 1.5},
			infer.Sampling{Temperature: 1, RepetitionPenalty: 1.5}},
		"length": {&hf.Generation{MaxNewTokens: ptr(3)}, nil, infer.Sampling{Temperature: 0.25, MaxTokens: 3},
			infer.Sampling{Temperature: 1}},
		"flags win": {&hf.Generation{Sample: ptr(true), Temperature: ptr(0.7), TopK: ptr(5), TopP: ptr(0.5),
			MinP: ptr(0.1), RepetitionPenalty: ptr(1.5), MaxNewTokens: ptr(3)},
			[]string{"--temperature=0.1", "--top-k=1", "--top-p=0.2", "--min-p=0.3", "--repetition-penalty=1.1",
				"--max-tokens=4"},
			infer.Sampling{Temperature: 0.1, TopK: 1, TopP: 0.2, MinP: 0.3, RepetitionPenalty: 1.1, MaxTokens: 4},
			infer.Sampling{Temperature: 0.7, TopK: 5, TopP: 0.5, MinP: 0.1, RepetitionPenalty: 1.5}},
	} {
		var said bytes.Buffer
		a := &app{err: &said}
		var s sampling
		f := pflag.NewFlagSet("x", pflag.ContinueOnError)
		s.flags(f, 0.25, 9)
		if err := f.Parse(x.flags); err != nil {
			t.Fatal(err)
		}
		took := !reflect.DeepEqual(x.want, plain) && x.flags == nil
		if x.want.RepetitionPenalty == 0 {
			x.want.RepetitionPenalty = 1 // the flag's default
		}
		s.adopt(a, x.g)
		if !reflect.DeepEqual(s.Sampling, x.want) {
			t.Errorf("%s: %+v, want %+v", name, s.Sampling, x.want)
		}
		if strings.Contains(said.String(), "generation_config.json") != took {
			t.Errorf("%s: said %q", name, said.String())
		}
		if got := servedDefaults(x.g); !reflect.DeepEqual(*got, x.served) {
			t.Errorf("%s, served: %+v, want %+v", name, *got, x.served)
		}
	}
}

// Each setting of a chat is set alone, and what it cannot be leaves all as it was.
func TestChatSet(t *testing.T) {
	for name, want := range map[string]infer.Sampling{
		"temperature 0.5": {Temperature: 0.5}, "top-k 3": {TopK: 3}, "top-p 0.5": {TopP: 0.5},
		"min-p 0.25": {MinP: 0.25}, "max-tokens 7": {MaxTokens: 7}, "seed 9": {Seed: 9},
	} {
		r := &repl{f: &chatFlags{}}
		if err := r.set(strings.Fields(name)); err != nil || !reflect.DeepEqual(r.f.Sampling, want) {
			t.Errorf("%s: %+v, %v", name, r.f.Sampling, err)
		}
	}
	for words, want := range map[string]string{
		"": "/set: want a name", "top-k": "/set: want a name", "top-k 3 4": "/set: want a name",
		"top-q 3": `/set: "top-q" is not one of`,
		"top-k x": `/set top-k: "x" is not a number`, "top-p 2": "top_p", "temperature -1": "temperature",
	} {
		r := &repl{f: &chatFlags{}}
		if err := r.set(strings.Fields(words)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			!reflect.DeepEqual(r.f.Sampling, infer.Sampling{}) {
			t.Errorf("%q: %v, %+v", words, err, r.f.Sampling)
		}
	}
	if err := (&repl{}).command([]string{"/nonsense"}); err == nil {
		t.Error("an unknown command passes")
	}
}

// A share of the sources: by weight where there are weights, by tokens otherwise.
func TestShareOut(t *testing.T) {
	for _, x := range []struct {
		in   []sourceRow
		want []float64
	}{
		{[]sourceRow{{Tokens: 30}, {Tokens: 10}}, []float64{0.75, 0.25}},
		{[]sourceRow{{Tokens: 30, Share: 1}, {Tokens: 10, Share: 3}}, []float64{0.25, 0.75}},
		{[]sourceRow{{}, {}}, []float64{0, 0}},
	} {
		for i, s := range shareOut(x.in) {
			if s.Share != x.want[i] {
				t.Errorf("source %d of %+v: %g, want %g", i, x.in, s.Share, x.want[i])
			}
		}
	}
}
