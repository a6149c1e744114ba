package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
)

// Passages stand around the text before the question, which may be at any place among them; a question alone comes
// after all of them. Each passage of a question is another.
func TestPassagesArePut(t *testing.T) {
	x := &noisePassages{text: data.Prose, bytes: 70, seed: 3}
	const body, question = "A story é.\nOf two lines.", "\n\nQuestion: why?\nAnswer:"
	for range 40 {
		x.gold = append(x.gold, eval.Continuation{Context: body + question, Text: " 10"})
	}
	for _, kind := range noiseKinds[3:] {
		for n := range 4 {
			places := map[int]bool{}
			for item := range x.gold {
				got := x.put(body+question, &kind, item, n)
				parts := strings.Split(strings.TrimSuffix(got, question), "\n\n")
				places[slices.Index(parts, body)] = true
				sorted := slices.Sorted(slices.Values(parts))
				if len(parts) != n+1 || !strings.HasSuffix(got, question) || len(slices.Compact(sorted)) != n+1 ||
					slices.Index(parts, body) < 0 {
					t.Fatalf("%d %s: %q", n, kind.name, got)
				}
				alone := x.put(question[2:], &kind, item, n)
				if strings.Count(alone, "\n\n") != n || !strings.HasSuffix("\n\n"+alone, question) {
					t.Fatalf("%d %s before a question: %q", n, kind.name, alone)
				}
			}
			if len(places) != n+1 {
				t.Errorf("%d %s: the text is at %d places", n, kind.name, len(places))
			}
		}
	}
	seen := map[string]bool{}
	for item := range 5 {
		for i := range 5 {
			s := irrelevantPassage(x, item, i, "")
			if seen[s] || len(s) > 70 || len(s) < 10 || strings.HasPrefix(s, "Nothing happened") {
				t.Errorf("passage %d of %d: %q", i, item, s)
			}
			seen[s] = true
		}
	}
	x.text = func(*rand.Rand, int) string { return " " }
	if s := irrelevantPassage(x, 0, 0, ""); s != "Nothing happened that day." {
		t.Errorf("without sentences: %q", s)
	}
}

// Where a question and a prompt's last line begin, what words and gaps a text has, and which question a prompt is
// about.
func TestPartsOfPrompts(t *testing.T) {
	for prompt, want := range map[string][2]int{ // the question; the last line, or word
		"Question: a\nAnswer:": {0, 12}, "\nQuestion: a": {1, 1}, "\nlast line": {1, 1}, "one line": {0, 4},
		"single": {0, 0}, "a\nb c\n \n": {2, 2}, "": {0, 0}, "T\n\nQuestion: a\nAnswer:": {3, 15},
	} {
		if q, last := passagesEnd(prompt), asking(prompt); q != want[0] || last != want[1] {
			t.Errorf("%q: %d and %d, want %v", prompt, q, last, want)
		}
	}
	for text, want := range map[string]string{"": "[] [\"\"]", "a": `["a"] ["" ""]`,
		"é  b\n": `["é" "b"] ["" "  " "\n"]`, "\u00a0a b": `["a" "b"] ["\u00a0" " " ""]`} {
		words, gaps := wordsOf(text)
		if got := fmt.Sprintf("%q %q", words, gaps); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "x", 0}, {"ab", "abc", 2}, {"abc", "ab", 2}, {"abc", "abc", 3}, {"axc", "abc", 1},
		{"x", "y", 0}} {
		if got := common(c.a, c.b); got != c.want {
			t.Errorf("%q and %q have %d bytes in common, want %d", c.a, c.b, got, c.want)
		}
	}
	gold := []eval.Continuation{{Context: "abc"}, {Context: "abd"}, {Context: "abd"}, {Context: "xyz"}}
	y := &noisy{noise: &noise{inner: &eval.Prepared{Job: &eval.Job{Gold: gold}}}}
	for _, c := range []struct {
		which  []int
		prompt string
		want   int
	}{{[]int{0, 1, 2, 3}, "abc more", 0}, {[]int{0, 1, 2, 3}, "abd", 1}, {[]int{0, 2, 3}, "abd", 2},
		{[]int{3, 0}, "ab", 0}, {[]int{2, 3}, "xy", 3}, {[]int{2, 3}, "nothing", 2}} {
		y.which = c.which
		if got := y.item(c.prompt); got != c.want {
			t.Errorf("%q is question %d of %v, want %d", c.prompt, got, c.which, c.want)
		}
	}
}

// Wrong numbers have the digits of their own question's, any digit but a zero before others; a sentence may begin with
// the answer.
func TestWrongNumbers(t *testing.T) {
	x := &noisePassages{seed: 5}
	for i := range 120 {
		x.gold = append(x.gold, eval.Continuation{Text: " " + strings.Repeat("7", 1+i%4)},
			eval.Continuation{Text: " words"})
	}
	begins := [5]map[byte]bool{{}, {}, {}, {}, {}}
	for i, g := range x.gold {
		if right := strings.TrimSpace(g.Text); i%2 == 0 {
			wrong := x.wrong(i)
			if len(wrong) != len(right) || wrong == right || len(numbers(wrong)) != 1 {
				t.Errorf("%q for %q", wrong, right)
			}
			begins[len(wrong)][wrong[0]] = true
		}
	}
	if !begins[1]['0'] || len(begins[1]) < 7 || begins[3]['0'] || len(begins[3]) < 7 {
		t.Errorf("numbers begin with %v and %v", begins[1], begins[3])
	}
	for _, c := range [][3]string{{"10 is the code. It is.\nQuestion: q", " 10.", "99 is the code."},
		{"Say 10 and 20. Or 10.\nQuestion: q", " 10 and 20.", "Say 99 and 20."},
		{"Red is it. So red?\nQuestion: q", " Red.", "99 is it."}} {
		x.gold = []eval.Continuation{{Context: c[0], Text: c[1]}}
		if got := contradictingPassage(x, 0, 0, "99"); got != denials[0]+c[2] {
			t.Errorf("%q: %q, want %q", c[0], got, c[2])
		}
	}
}

// What settings make of the noise: number of questions, examples, room for the largest dose of any kind, bytes of a
// passage.
func TestNoisePlan(t *testing.T) {
	with := func(context, shots int, set ...string) (*eval.Prepared, error) {
		opt := eval.Options{Shots: shots,
			Set: map[string]string{"noise.task": "piqa", "noise.kinds": "typos,adversarial"}}
		for _, s := range set {
			key, value, _ := strings.Cut(s, "=")
			opt.Set["noise."+key] = value
		}
		opt.Measure([]eval.Target{modelOf("stub", &knower{}, context)})
		return opt.Prepare(t.Context(), lookup(t, "noise"))
	}
	good := func(context, shots int, set ...string) *eval.Prepared {
		j, err := with(context, shots, set...)
		if err != nil {
			t.Fatal(set, err)
		}
		return j
	}
	for samples, want := range map[int]int{1: 1, 7: 7, 200: 200, 500: 200} {
		if j := good(1024, 0, fmt.Sprintf("samples=%d", samples)); len(j.IDs) != want || len(j.Gold) != want {
			t.Errorf("%d samples: %d", samples, len(j.IDs))
		}
	}
	for shots, want := range map[int]int{-1: 0, 0: 0, 2: 2} {
		if j := good(1024, shots, "samples=2"); j.Config["inner_shots"] != want ||
			strings.Count(j.Gold[0].Context, "\n\n") != want {
			t.Errorf("%d examples: %v, %q", shots, j.Config, j.Gold[0].Context)
		}
	}
	room := func(kinds string) int {
		return 1024 - good(1024, 0, "kinds="+kinds, "words=0.01,0.4", "passages=1").Config["inner_context"].(int)
	}
	if a, b := room("typos"), room("adversarial"); a != 1024*4/10/4 || b < 8 || b > 20 ||
		room("typos,adversarial") != a || room("adversarial,typos") != a {
		t.Errorf("room for %d and %d tokens, together %d and %d", a, b, room("typos,adversarial"),
			room("adversarial,typos"))
	}
	for context, least := range map[int][2]int{16: {40, 40}, 256: {41, 399}, 1 << 16: {400, 400}} {
		p := &eval.Plan{Context: context, Count: func(s string) int { return (len(s) + 3) / 4 },
			Values: map[string]any{"bytes": 0}}
		if got := passageBytes(p); got < least[0] || got > least[1] {
			t.Errorf("passages of %d bytes in a context of %d", got, context)
		}
		if p.Values["bytes"] = 1; passageBytes(p) != 1 {
			t.Errorf("passages of %d bytes, 1 is asked for", passageBytes(p))
		}
	}
	for _, bad := range []string{"words=0,0.1", "passages=2,1", "words=0.3,0.2"} {
		if _, err := with(1024, 0, bad); err == nil || !strings.Contains(err.Error(), "growing") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A curve begins with the score of the plain prompts; a task without right answers, or that gives none, is refused.
func TestNoiseCurve(t *testing.T) {
	opt := eval.Options{Shots: -1, Limit: 3,
		Set: map[string]string{"noise.task": "boolq", "noise.kinds": "adversarial,typos", "noise.words": "1"}}
	j := prepared(t, lookup(t, "noise"), opt, 2048)
	r := answer(t, lookup(t, "noise"), opt, &onlyKnown{knows(j.Job)}, 2048)
	for k, want := range []string{"adversarial [0 1 2 3] 1 passages", "typos [0 1] 1 share of words"} {
		c := detail[NoiseDetail](t, r).Curves[k]
		if got := fmt.Sprint(c.Kind, " ", c.Doses, " ", c.Scores[0].Value, " ", c.Unit); got != want || k == 0 &&
			(c.Scores[1].Value != 0 || c.Scores[3].Value != 0) {
			t.Errorf("%s, want %s: %+v", got, want, c.Scores)
		}
	}
	mine := *lookup(t, "boolq")
	mine.Name = "mine"
	for want, prepare := range map[string]func(*eval.Job){
		"want one with right answers": func(j *eval.Job) { j.Gold = nil },
		"mine gave no acc": func(j *eval.Job) {
			j.Ask = func(_ context.Context, _ eval.LM, which []int) ([]eval.Answer, error) {
				return make([]eval.Answer, len(which)), nil
			}
		},
	} {
		mine.Prepare = func(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
			j, err := lookup(t, "boolq").Prepare(ctx, p)
			prepare(j)
			return j, err
		}
		opt.Tasks, opt.Set = []eval.Task{mine}, map[string]string{"noise.task": "mine"}
		if _, err := eval.Run(t.Context(), []eval.Target{modelOf("stub", &knower{}, 2048)},
			[]eval.Task{*lookup(t, "noise")}, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// onlyKnown is wrong about every prompt that it does not know.
type onlyKnown struct{ *knower }

func (o *onlyKnown) Loglikelihood(ctx context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out, err := o.knower.Loglikelihood(ctx, reqs)
	for i, r := range reqs {
		if _, ok := o.gold[r.Context]; !ok {
			for prompt, right := range o.gold {
				if strings.Contains(r.Context, prompt[asking(prompt)-len("Question: is "):]) && right != r.Text {
					out[i].LogProb = 0
				}
			}
		}
	}
	return out, err
}
