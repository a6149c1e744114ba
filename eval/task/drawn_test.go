package task

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// Each kind of slip by its number, at a place of its own; short words stay.
func TestTypo(t *testing.T) {
	for _, x := range []struct {
		h    uint64
		word string
		want string
	}{
		{0 | 1<<8, "abcd", "acbd"}, {1 | 1<<8, "abcd", "acd"}, {2 | 1<<8, "abcd", "abbcd"}, {3 | 1<<8, "abcd", "avcd"},
		{3 | 3<<8 | 1<<32, "abcd", "ancd"},
		{0 | 2<<8, "abcd", "abdc"}, {0 | 3<<8, "abcd", "bacd"}, {3, "é23", "é23"}, {3, "Abc", "sbc"}, {0, "ab", "ab"},
		{1, "abc", "bc"}, {2, "a\xffb", "a\xffb"},
	} {
		if got := typo(x.h, x.word); got != x.want {
			t.Errorf("%x of %q: %q, want %q", x.h, x.word, got, x.want)
		}
	}
}

// A wrong answer has the right one's form: as many digits, no leading zero, another value; or another question's words.
func TestWrongAnswers(t *testing.T) {
	x := &noisePassages{seed: 5}
	for i := range 200 {
		x.gold = append(x.gold, eval.Continuation{Text: fmt.Sprintf(" %d.", 10+i%90)})
	}
	for i := range x.gold {
		right, wrong := x.answer(i), x.wrong(i)
		if wrong == right || len(wrong) != len(right) || wrong[0] == '0' || len(numbers(wrong)) != 1 ||
			x.wrong(i) != wrong {
			t.Fatalf("%q for %q", wrong, right)
		}
	}
	words := &noisePassages{gold: []eval.Continuation{{Text: " red."}, {Text: " red"}, {Text: " blue"}}}
	if words.wrong(0) != "blue" || words.wrong(2) != "red" || words.answer(0) != "red" {
		t.Errorf("%q, %q", words.wrong(0), words.wrong(2))
	}
	if alone := (&noisePassages{gold: []eval.Continuation{{Text: " red"}}}); alone.wrong(0) != "something else" {
		t.Errorf("%q", alone.wrong(0))
	}
	x.gold[0].Context = "First 7. The code is 10. Then 100.\nQuestion: which?"
	for i, begin := range []string{"Some say, wrongly: ", "It is not true: ", "An old error: ", "Do not believe this: ",
		"Some say, wrongly: "} {
		if got := contradictingPassage(x, 0, i, "99"); got != begin+"The code is 99." {
			t.Errorf("%q", got)
		}
	}
	x.gold[0].Context = "In 2010 of x10 codes 1010 was lost, but 10 is ours, 10.\nQuestion: which?"
	if got := contradictingPassage(x, 0, 0,
		"99"); got != "Some say, wrongly: In 2010 of x10 codes 1010 was lost, but 99 is ours, 10." {
		t.Errorf("%q", got)
	}
	if got := contradictingPassage(words, 0, 1, "blue"); got != "It is not true: The answer is blue." {
		t.Errorf("%q", got)
	}
	for prompt, want := range map[string]int{"Question: a": 0, "T\nQuestion: a\nAnswer:": 2, "one line": 0,
		"a\nb\nlast\n": 4, "Question: x\nQuestion: y": 12} {
		if got := passagesEnd(prompt); got != want {
			t.Errorf("%q: %d, want %d", prompt, got, want)
		}
	}
}

// A haystack of one's own: whole sentences of the file, from places that differ; too little text, or text without
// sentences, is refused.
func TestHaystackOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		writeSet(t, dir, name, fmt.Sprintf("{\"text\": %q}", text))
		return filepath.Join(dir, name+".jsonl")
	}
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "Sentence number %d is here. ", i)
	}
	prepare := func(path string, length int) (*eval.Prepared, error) {
		opt := eval.Options{Shots: -1, Set: map[string]string{"needle.haystack": path, "needle.samples": "2",
			"needle.needles": "1", "needle.queries": "1"}}
		opt.Measure([]eval.Target{modelOf("m", &knower{}, length)})
		return opt.Prepare(t.Context(), lookup(t, "needle"))
	}
	good := write("good", b.String())
	j, err := prepare(good, 300)
	if err != nil || j.Config["source"] != good {
		t.Fatalf("%v, %v", j, err)
	}
	first := map[string]bool{}
	for _, g := range j.Gold {
		if !strings.Contains(g.Context, " is here. Sentence number ") {
			t.Errorf("%q", g.Context)
		}
		_, rest, _ := strings.Cut(g.Context, "Sentence number ")
		first[rest[:3]] = true
	}
	if len(first) < 3 {
		t.Errorf("%d prompts begin at %d places", len(j.Gold), len(first))
	}
	if _, err := prepare(good, 9000); err == nil || !strings.Contains(err.Error(), "give more text") {
		t.Errorf("too little text: %v", err)
	}
	if _, err := prepare(write("none", strings.Repeat("no end ", 2000)), 300); err == nil ||
		!strings.Contains(err.Error(), "no sentences") {
		t.Errorf("no sentences: %v", err)
	}
	take := sentencesOf("One. Two. Three.")
	if got := take(rand.New(rand.NewPCG(1, 1)), 99); got != "One. Two. Three." {
		t.Errorf("%q", got)
	}
	for range 20 {
		if got := take(rand.New(rand.NewPCG(1, 1)), 9); got != "One. Two." && got != "Two." {
			t.Errorf("%q", got)
		}
	}
}
