package task

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"antiphase/data"
	"antiphase/eval"
)

// silent gives scores of no tokens.
type silent struct{ knower }

func (*silent) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	return make([]eval.Score, len(texts)), nil
}

// Texts without tokens are refused; of positions only the first window counts, at whatever position it restarts; pairs
// are frequent above a share, not at it.
func TestLMEdges(t *testing.T) {
	if _, err := askLM(t.Context(), &silent{}, []string{"a"}, nil); err == nil ||
		!strings.Contains(err.Error(), "no tokens") {
		t.Errorf("%v", err)
	}
	at := func(positions ...int) (out []eval.TokenLoss) {
		for _, p := range positions {
			out = append(out, eval.TokenLoss{ID: 1, Position: p, Loss: float64(p)})
		}
		return out
	}
	for _, list := range [][]eval.TokenLoss{at(1, 2, 3), at(1, 2, 3, 1, 2, 3, 4), at(1, 2, 3, 2, 3, 4, 5, 6),
		at(1, 2, 3, 3, 4)} {
		if got := stretches(list); fmt.Sprint(got) != "{[1 2 3] [1 2 3]}" {
			t.Errorf("%v: %v", list, got)
		}
	}
	one := positions{Ends: []int{1}, Sums: []float64{2}}
	if d := byPosition([]positions{one, one, {Ends: []int{1, 2}, Sums: []float64{5, 1}}}, 9); d.Pieces != 3 ||
		d.Left != 0 || len(d.ByPosition) != 1 || d.ByPosition[0].Loss.Value != 3 {
		t.Errorf("%+v", d)
	}
	for share, want := range map[float64]int{0.4: 2, 0.5: 0, 0.6: 0} { // two pairs of half each
		if got := frequentPairs([][]int32{{1, 2, 1, 2, 1, 2, 1, 2, 1}}, share); len(got) != want {
			t.Errorf("above %g: %v", share, got)
		}
	}
	if a, b := frequentPairs([][]int32{{1, 2, 1, 2}}, 0),
		frequentPairs([][]int32{{1, 2, 1, 2, 1, 2}}, 0); len(a) != 0 || len(b) != 1 {
		t.Errorf("two of a pair are few, three are not: %v, %v", a, b)
	}
}

// Orders take the examples asked for, at most those that fit, and half of those without a number; their spread does not
// depend on which order a limit has cut; labels that have names of their own are left alone.
func TestOrderEdges(t *testing.T) {
	dir := iclFiles(t)
	for context := 20; context < 60; context += 3 {
		with := func(shots int) (*eval.Prepared, error) {
			opt := eval.Options{Data: dir, Limit: 1, Set: map[string]string{"icl_order.shots": fmt.Sprint(shots)}}
			opt.Measure([]eval.Target{modelOf("m", &knower{}, context)})
			return opt.Prepare(t.Context(), lookup(t, "icl_order_banking77"))
		}
		counts := prepared(t, lookup(t, "icl_banking77"), eval.Options{Data: dir},
			context).Config["shot_counts"].([]int)
		fit := counts[len(counts)-1]
		for shots := range fit + 2 {
			want := shots
			if shots == 0 {
				want = max(fit/2, 1)
			}
			j, err := with(shots)
			if (err == nil) != (shots <= fit) || err == nil &&
				(j.Config["used_shots"] != want || strings.Count(j.Gold[0].Context, "\n==\n") != want) {
				t.Errorf("%d of %d examples: %v", shots, fit, err)
			}
		}
	}
	a, b := []float64{1, 0, 1, 1, 0, 1}, []float64{0, 0, 1, 0}
	if x, y := spreadError([][]float64{a, b}, 3), spreadError([][]float64{b, a}, 3); x != y || x <= 0 {
		t.Errorf("%g, and %g the other way round", x, y)
	}
	hash := func(task, labels string) string {
		files := map[string]string{"icl/labels.json": labels}
		for _, name := range []string{"trec", "banking77"} {
			rows := `{"text":"t","label":"A"}` + "\n" + `{"text":"u","label":"B"}`
			files["icl/"+name+"_train.jsonl"], files["icl/"+name+"_test.jsonl"] = rows, rows
		}
		return fmt.Sprint(prepared(t, lookup(t, task), eval.Options{Data: setFiles(t, files)}, 512).Data())
	}
	for task, same := range map[string]bool{"icl_trec": false, "icl_banking77": true} {
		if a, b := hash(task, `{"trec_coarse":{"A":"x"}}`), hash(task, `{"trec_coarse":{"A":"y"}}`); (a == b) != same {
			t.Errorf("%s with other names: %s and %s", task, a, b)
		}
	}
}

// Every preset has the tasks of its parts, without those beside the published table, with its own number of examples or
// the tasks' default, and as published unless it is to fit.
func TestPresetTasks(t *testing.T) {
	for _, p := range Presets() {
		for _, fit := range []bool{false, true} {
			got, err := p.Tasks(fit, 1024)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range p.Parts {
				tasks, _ := eval.Select(All(), strings.Split(part.Tasks, ","))
				for _, task := range tasks {
					if task.Beside {
						continue
					}
					set := map[string]string{}
					for key, value := range part.Set {
						set[key] = value
					}
					if fit && part.Fit != nil {
						for key, value := range part.Fit(1024) {
							set[key] = value
						}
					}
					if part.Shots > 0 {
						task.Shots = part.Shots - 1
					}
					want := task.With(set)
					if len(got) == 0 || got[0].Name != want.Name || got[0].Shots != want.Shots ||
						fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", want) {
						t.Fatalf("%s, fit %v: %+v, want %+v", p.Name, fit, got[:min(1, len(got))], want)
					}
					got = got[1:]
				}
			}
			if len(got) > 0 {
				t.Errorf("%s has %s too", p.Name, got[0].Name)
			}
		}
	}
}

// Pieces of a text are whole characters that join without a gap; one that the text cannot fill is taken at its
// beginning only. Lengths go up to the context, and text of nothing is none.
func TestPiecesOfTexts(t *testing.T) {
	for _, text := range []string{"", "abcdefghij", "aéb漢cd🙂ef", "漢漢漢"} {
		for n := 1; n < 16; n++ {
			joined := ""
			for k := 0; ; k++ {
				piece := cutText(text, k*n, n)
				if piece == "" && k*n > 0 && (k+1)*n > len(text) || text == "" {
					break
				}
				if !utf8.ValidString(piece) || len(piece) > n+3 || k == 0 && len(piece) < min(n, len(text)) {
					t.Fatalf("%d bytes at %d of %q: %q", n, k*n, text, piece)
				}
				joined += piece
			}
			if !strings.HasPrefix(text, joined) || len(joined) < len(text)/n*n {
				t.Errorf("pieces of %d bytes of %q join to %q", n, text, joined)
			}
		}
	}
	for length, ok := range map[int]bool{0: true, 99: true, 100: true, 101: false} {
		if err := validLength(&eval.Plan{Context: 100, Values: map[string]any{"length": length}}); (err == nil) != ok {
			t.Errorf("%d tokens in a context of 100: %v", length, err)
		}
	}
	dir := setFiles(t, map[string]string{"lm/valid.jsonl": `{"text": "` + strings.Repeat(" ", 5000) + `x"}`})
	opt := eval.Options{Data: dir}
	opt.Measure([]eval.Target{modelOf("m", &knower{}, 64)})
	if _, err := opt.Prepare(t.Context(), lookup(t, "geometry")); err == nil ||
		!strings.Contains(err.Error(), "there is none") {
		t.Errorf("%v", err)
	}
}

// Few bytes still hold something to find, and as many numbers can be hidden as there are with so many digits.
func TestLeastHidden(t *testing.T) {
	p := &eval.Plan{Values: map[string]any{"common": 3, "often": 4}}
	for bytes := 1; bytes < 600; bytes++ {
		c := buildCommon(p, rand.New(rand.NewPCG(1, uint64(bytes))), nil, 0, bytes)
		count := map[string]int{}
		for _, w := range strings.Fields(strings.Split(c.prompt, "\n")[1]) {
			count[w]++
		}
		if len(c.right) != 3 || len(c.others) == 0 || len(count) != 3+len(c.others) {
			t.Fatalf("%d bytes: %v and %v", bytes, c.right, c.others)
		}
		for i, w := range slices.Concat(c.right, c.others) {
			if want := []int{4, 1}[int(truth(i >= 3))]; count[w] != want {
				t.Errorf("%d bytes: %s comes %d times, want %d", bytes, w, count[w], want)
			}
		}
	}
	for needles, ok := range map[int]bool{8: true, 9: true, 10: false} {
		if err := enoughDigits(&eval.Plan{Values: map[string]any{"digits": 1}}, needles); (err == nil) != ok {
			t.Errorf("%d numbers of one digit: %v", needles, err)
		}
	}
	for keys, ok := range map[int]bool{data.MostNeedles() / 2: true, data.MostNeedles()/2 + 1: false} {
		p := &eval.Plan{Context: 512, Values: map[string]any{"keys": keys, "values": 2, "digits": 9,
			"lengths": []int{0}}}
		if err := validValues(p); (err == nil) != ok {
			t.Errorf("two numbers of %d keys: %v", keys, err)
		}
	}
}

// Texts without words overlap in nothing, and signs are no part of words.
func TestOverlapOfNothing(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"?!", "…"}} {
		if got := rougeL(c[0], c[1]); got != 0 || math.IsNaN(wordF1(c[0], c[1])) || grounded(c[0], "b") != 0 {
			t.Errorf("%q: %g", c, got)
		}
	}
	if got := normalText("$5 + a 3€ ≈ 8^2"); got != "5 3 82" { // no longer an article where it stands alone
		t.Errorf("%q", got)
	}
}
