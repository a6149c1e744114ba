package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/infer"
	"antiphase/train"
)

// generated runs generate on the model of nanoRun and gives its output, the samples of --json and what it noted.
func generated(t *testing.T, args ...string) (out string, list []sample, notes string) {
	t.Helper()
	args = append([]string{"generate", "-m", "run", "--device", "cpu", "--precision", "fp32"}, args...)
	code, out, notes := ran(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit %d: %s", args, code, notes)
	}
	for d := json.NewDecoder(strings.NewReader(out)); slices.Contains(args, "--json") && d.More(); {
		var s sample
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return out, list, notes
}

// Several samples are printed in order with their numbers, as JSON with their own seeds; the tokens of all are counted.
func TestGeneratedSamples(t *testing.T) {
	nanoRun(t)
	// More than fit one batch.
	base := []string{"--temperature", "3", "--seed", "5", "-n", "3", "--ignore-eos", "--num-samples", "18", "abc"}
	_, list, notes := generated(t, append(base, "--json")...)
	if len(list) != 18 || !strings.HasPrefix(notes, "54 tokens, ") {
		t.Fatalf("%d samples: %s", len(list), notes)
	}
	want, echoed, texts := "", "", map[string]bool{}
	for i, s := range list {
		if s.Index != i || s.Seed != uint64(5+i) || s.Prompt != "abc" || len(s.IDs) != 3 || s.Reason != "length" ||
			s.Full || s.Tokens != nil || s.Logprob != nil || s.Top != nil {
			t.Errorf("sample %d: %+v", i, s)
		}
		want += fmt.Sprintf("--- sample %d\n%s\n", i+1, s.Text)
		echoed += fmt.Sprintf("--- sample %d\nabc%s\n", i+1, s.Text)
		texts[s.Text] = true
	}
	if len(texts) < 9 {
		t.Errorf("%d different texts", len(texts))
	}
	out, _, notes := generated(t, base...)
	if out != want || !strings.HasPrefix(notes, "54 tokens, ") {
		t.Errorf("%q, want %q: %s", out, want, notes)
	}
	if out, _, _ = generated(t, append(base, "--echo")...); out != echoed {
		t.Errorf("%q, want %q", out, echoed)
	}
	one := append(slices.Clone(base[:7]), "abc")
	if out, _, notes = generated(t, one...); out != list[0].Text+"\n" || !strings.HasPrefix(notes, "3 tokens, ") {
		t.Errorf("%q, want %q: %s", out, list[0].Text, notes)
	}
}

// A drawn seed is printed where it matters, and repeats the text; 0 tokens fill the context, which is said of each
// sample.
func TestGeneratedLength(t *testing.T) {
	nanoRun(t)
	_, list, notes := generated(t, "-n", "0", "--ignore-eos", "--num-samples", "2", "--json", "abc")
	for i, s := range list {
		if len(s.IDs) != 60 || !s.Full || s.Reason != "length" || s.Seed != list[0].Seed+uint64(i) {
			t.Errorf("%d tokens, full %v, by %q", len(s.IDs), s.Full, s.Reason)
		}
	}
	says := "stopped after 60 tokens: the context of 64 tokens is full (the prompt has 4)\n"
	if want := fmt.Sprintf("seed %d\n%s%s120 tokens, ", list[0].Seed, says, says); len(list) != 2 ||
		!strings.HasPrefix(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
	_, again, notes := generated(t, "-n", "60", "--ignore-eos", "--seed", fmt.Sprint(list[0].Seed), "--json", "abc")
	if again[0].Text != list[0].Text || again[0].Full || strings.Contains(notes, "seed ") ||
		strings.Contains(notes, "stopped") {
		t.Errorf("%+v: %s", again, notes)
	}
	if _, _, notes = generated(t, "-n", "1", "--temperature", "0", "abc"); strings.Contains(notes, "seed ") {
		t.Errorf("a seed that does not matter: %s", notes)
	}
	for _, x := range []struct {
		reason      string
		most, wrote int
		full        bool
	}{{infer.ReasonLength, 0, 5, true}, {infer.ReasonLength, 6, 5, true}, {infer.ReasonLength, 5, 5, false},
		{"stop", 6, 5, false}, {"stop", 0, 5, false}} {
		f := &generateFlags{}
		if f.MaxTokens = x.most; f.full(x.reason, x.wrote) != x.full {
			t.Errorf("%+v", x)
		}
	}
}

// Log-probabilities are those of the raw logits of the text so far, at every position, the most likely first.
func TestGeneratedLogprobs(t *testing.T) {
	nanoRun(t)
	_, list, _ := generated(t, "--temperature", "0", "-n", "5", "--ignore-eos", "--logprobs", "4", "--json",
		"--repetition-penalty", "1.5", "abc")
	s := list[0]
	ids := append([]int32{256, 'a', 'b', 'c'}, s.IDs...)
	code, out, errs := ran(t, "logits", "-m", "run", "--device", "cpu", "--json", "-q", "--ids",
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ","), "[]"))
	var raw struct{ Logits [][]float64 }
	if err := json.Unmarshal([]byte(out), &raw); code != 0 || err != nil || len(s.IDs) != 5 || len(s.Logprob) != 5 ||
		len(s.Top) != 5 || len(s.Tokens) != 5 {
		t.Fatalf("exit %d, %v, %s: %+v", code, err, errs, s)
	}
	for i, id := range s.IDs {
		row, sum := raw.Logits[3+i], 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		if want := row[id] - math.Log(sum); !(math.Abs(s.Logprob[i]-want) <= 1e-4) {
			t.Errorf("token %d: %g, want %g", i, s.Logprob[i], want)
		}
		sorted := slices.Sorted(slices.Values(row))
		for k, top := range s.Top[i] {
			if want := sorted[len(sorted)-1-k] - math.Log(sum); len(s.Top[i]) != 4 ||
				!(math.Abs(top.Logprob-want) <= 1e-4) || !(math.Abs(row[top.ID]-sorted[len(sorted)-1-k]) <= 1e-4) {
				t.Errorf("token %d, place %d: %+v, want %g", i, k, top, want)
			}
			if text := string([]byte{byte(top.ID)}); top.ID < 128 && top.Token != text || top.ID >= 128 &&
				top.ID < 256 && top.Token != "\uFFFD" {
				t.Errorf("%+v", top)
			}
		}
	}
}

// A sample of a run depends on its step alone; one that cannot be made is told and does not end the run.
func TestRunSamples(t *testing.T) {
	nanoRun(t)
	l := loadedRun(t)
	f := &sampleFlags{prompt: "abc", length: 12}
	say := func(step int) string {
		text, err := f.say(t.Context(), step, l.Model, l.Tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for step := range 3 {
		_, list, _ := generated(t, "--temperature", "0.8", "--seed", fmt.Sprint(step), "-n", "12", "--json", "abc")
		if got := say(step); got != list[0].Text {
			t.Errorf("step %d: %q, want %q", step, got, list[0].Text)
		}
	}
	var said bytes.Buffer
	var opt train.Options
	f.every = 4
	f.probe(&app{err: &said}, "nowhere", &opt)
	if err := opt.Probe(t.Context(), 7, l.Model, l.Tokenizer); err != nil || opt.ProbeEvery != 4 ||
		!strings.HasPrefix(said.String(), "warning: no sample at step 7: ") {
		t.Errorf("%v, every %d: %s", err, opt.ProbeEvery, said.String())
	}
	opt = train.Options{}
	if (&sampleFlags{}).probe(&app{}, "run", &opt); opt.Probe != nil || opt.ProbeEvery != 0 {
		t.Error("samples that were not asked for")
	}
}
