package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// solver answers by reading the prompt with rules of its own.
type solver struct {
	knower
	solve func(prompt string) []string
}

func (s *solver) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, r := range reqs {
		out[i] = " " + strings.Join(s.solve(r.Prompt), ", ") + "."
	}
	return out, nil
}

func (s *solver) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	out := make([]int, len(reqs))
	for i, r := range reqs {
		at := strings.LastIndexByte(r.Prompt, '\n') // what was given already follows the question
		begin := max(strings.LastIndex(r.Prompt, " are "), strings.LastIndex(r.Prompt, " is"))
		given := r.Prompt[max(at, begin):]
		out[i] = -1
		for _, right := range s.solve(r.Prompt) {
			if k := slices.Index(r.Options, " "+right); k >= 0 && wordIndex(given, right) < 0 && out[i] < 0 {
				out[i] = k
			}
		}
	}
	return out, nil
}

var (
	codeOf    = regexp.MustCompile(`The code of (\w+) is (\d+)\.`)
	usesOf    = regexp.MustCompile(`(\w+) uses the code of (\w+)\.`)
	setTo     = regexp.MustCompile(`VAR (\w+) = (\w+)\.`)
	setLike   = regexp.MustCompile(`VAR (\w+) = VAR (\w+)\.`)
	magicCode = regexp.MustCompile(`The magic code is (\w+) (\d+)\.`)
)

// hops resolves a key through at most this many sentences.
func hops(most int) func(prompt string) []string {
	return func(prompt string) []string {
		body := prompt[:asking(prompt)]
		key := regexp.MustCompile(`Which code is that of (\w+)\?`).FindStringSubmatch(prompt)[1]
		codes, uses := map[string]string{}, map[string]string{}
		for _, m := range codeOf.FindAllStringSubmatch(body, -1) {
			codes[m[1]] = m[2]
		}
		for _, m := range usesOf.FindAllStringSubmatch(body, -1) {
			uses[m[1]] = m[2]
		}
		for range most {
			if next, ok := uses[key]; ok {
				key = next
			}
		}
		return []string{codes[key]}
	}
}

func variables(prompt string) (out []string) {
	want := regexp.MustCompile(`have the value (\d+)\?`).FindStringSubmatch(prompt)[1]
	value := map[string]string{}
	for _, s := range sentences(prompt[:asking(prompt)]) { // in order, as a program would run
		if m := setLike.FindStringSubmatch(s); m != nil {
			value[m[1]] = value[m[2]]
		} else if m := setTo.FindStringSubmatch(s); m != nil {
			value[m[1]] = m[2]
		}
		if m := regexp.MustCompile(`VAR (\w+) =`).FindStringSubmatch(s); m != nil && value[m[1]] == want {
			out = append(out, m[1])
		}
	}
	return out
}

func commonWords(prompt string) []string {
	count := map[string]int{}
	lines := strings.Split(prompt, "\n")
	for _, w := range strings.Fields(lines[1]) {
		count[w]++
	}
	words := sortedWords(count)
	slices.SortStableFunc(words, func(a, b string) int { return count[b] - count[a] })
	return words[:2]
}

func sortedWords(m map[string]int) (out []string) {
	for w := range m {
		out = append(out, w)
	}
	slices.Sort(out)
	return out
}

func magicCodes(prompt string) (out []string) {
	city := regexp.MustCompile(`begin with (\w+)\?`).FindStringSubmatch(prompt)[1]
	for _, m := range magicCode.FindAllStringSubmatch(prompt[:asking(prompt)], -1) {
		if m[1] == city {
			out = append(out, m[2])
		}
	}
	return out
}

// Whoever reads the text by the rules is always right, in every score and at every length: the answers stand in the
// prompts.
func TestHiddenIsThere(t *testing.T) {
	for name, solve := range map[string]func(string) []string{"needle_hop": hops(2), "ruler_variables": variables,
		"ruler_common": commonWords, "ruler_values": magicCodes} {
		opt := eval.Options{Seed: 3, Shots: -1,
			Set: map[string]string{name + ".lengths": "160,700", name + ".samples": "30"}}
		r := answer(t, lookup(t, name), opt, &solver{solve: solve}, 2048)
		for _, m := range hiddenScores {
			if x, _ := r.Metric(m.Name); x.Value != 1 || x.N < 60 {
				t.Errorf("%s: %s of a reader is %+v", name, m.Name, x.Mean)
			}
		}
		if x, ok := r.Metric("bound@700"); !ok || x.Value != 1 {
			t.Errorf("%s: by length: %+v", name, x)
		}
		d := detail[HiddenDetail](t, r)
		for _, cell := range d.Cells {
			if x, ok := r.Metric("bound " + cell); !ok || x.Value != 1 || x.N != 60 {
				t.Errorf("%s: %s: %+v", name, cell, x)
			}
		}
		if len(d.Scores) != len(hiddenScores) {
			t.Errorf("%s: %d scores", name, len(d.Scores))
		}
		for score, cells := range d.Scores {
			for _, row := range cells {
				if len(row) != 2 || row[0].Value != 1 || row[1].N != 30 {
					t.Errorf("%s: %s by cell and length %+v", name, score, cells)
				}
			}
			if want := r.N / 60; len(cells) != want {
				t.Errorf("%s: %d cells, want %d", name, len(cells), want)
			}
		}
	}
}

// A reader that resolves no sentence, one or two is right at as many hops and nowhere else.
func TestHops(t *testing.T) {
	opt := eval.Options{Seed: 3, Shots: -1,
		Set: map[string]string{"needle_hop.lengths": "300", "needle_hop.samples": "25"}}
	for most := range 3 {
		d := detail[HiddenDetail](t, answer(t, lookup(t, "needle_hop"), opt, &solver{solve: hops(most)}, 2048))
		for cell, row := range d.Scores["bound"] {
			if want := truth(cell <= most); row[0].Value != want {
				t.Errorf("a reader of %d hops scores %g at %s", most, row[0].Value, d.Cells[cell])
			}
		}
	}
}

// Naming right and wrong things is worth the share that is right; numbers that were not hidden count as wrong.
func TestHiddenScore(t *testing.T) {
	c := hiddenCase{right: []string{"12", "34"}, others: []string{"56", "78"}}
	for _, x := range []struct {
		text        string
		free, bound float64
	}{{" 12, 34.", 1, 1}, {" 34 and 12 and 12", 1, 1}, {" 12, 56.", 0.5, 0.5}, {" 12, 34, 56, 78", 1, 0.5},
		{" 12", 0.5, 0.5}, {"", 0, 0}, {" 12 34 99 98", 1, 0.5}, {" 123 4", 0, 0}} {
		if free, bound := c.score(x.text); free != x.free || bound != x.bound {
			t.Errorf("%q scores %g free and %g bound, want %g and %g", x.text, free, bound, x.free, x.bound)
		}
	}
}

// Words that were hidden and are not asked for count as wrong; other words are not answers at all.
func TestHiddenWords(t *testing.T) {
	c := hiddenCase{right: []string{"bada", "kilo"}, others: []string{"mope", "é"}}
	for _, x := range []struct {
		text        string
		free, bound float64
	}{{" bada, kilo.", 1, 1}, {" bada, mope.", 0.5, 0.5}, {" bada kilo mope", 1, 2. / 3},
		{" bada kilo mope é mope", 1, 0.5}, {" bada, kilo and others", 1, 1}, {" mope é", 0, 0}, {" badakilo", 0, 0}} {
		if free, bound := c.score(x.text); free != x.free || !near(bound, x.bound, 1e-12) {
			t.Errorf("%q scores %g free and %g bound, want %g and %g", x.text, free, bound, x.free, x.bound)
		}
	}
}

// Sentences are put between those of the text, in their order where that matters, and all of them even where the length
// leaves no room for other text.
func TestBuried(t *testing.T) {
	hay := &haystack{text: sentencesOf(strings.Repeat("Some hay is here. ", 40))}
	list := []string{"First one.", "Second é one.", "Third one."}
	orders := map[string]bool{}
	for i := range 60 {
		for _, bytes := range []int{1, 60, 200} {
			for _, inOrder := range []bool{false, true} {
				got := buried(rand.New(rand.NewPCG(1, uint64(i))), hay, bytes, "BEGIN", list, inOrder, "END?")
				lines := strings.Split(got, "\n")
				a, b, c := strings.Index(got, list[0]), strings.Index(got, list[1]), strings.Index(got, list[2])
				if len(lines) != 3 || lines[0] != "BEGIN" || lines[2] != "END?" || min(a, b, c) < 0 ||
					len(got) > max(bytes, len("BEGIN\nEND?\n")+len(strings.Join(list, " "))+1) {
					t.Fatalf("%d bytes: %q", bytes, got)
				}
				if inOrder && (a > b || b > c) {
					t.Errorf("not in order: %q", got)
				}
				if rest := strings.NewReplacer(list[0], "", list[1], "", list[2], "", "Some hay is here.", "", " ",
					"").Replace(lines[1]); rest != "" || bytes == 200 && !strings.Contains(got, "hay") {
					t.Errorf("%q is left of %q", rest, got)
				}
				if !inOrder && bytes == 200 {
					orders[fmt.Sprint(a < b, b < c, strings.HasPrefix(lines[1], "Some"),
						strings.HasSuffix(lines[1], "here."))] = true
				}
			}
		}
	}
	if len(orders) < 12 {
		t.Errorf("%d kinds of places only: %v", len(orders), orders)
	}
}

// One choice after the other, each after the right ones before it, which are no longer offered; what is chosen counts
// if it is one of the right ones, whichever.
func TestHiddenChoices(t *testing.T) {
	cases := []hiddenCase{{prompt: "P", right: []string{"d", "b"}, others: []string{"c", "e"}},
		{prompt: "Q", right: []string{"z"}, others: []string{"y"}}}
	want := []eval.Choice{{Prompt: "P", Options: []string{" b", " c", " d", " e"}},
		{Prompt: "P d,", Options: []string{" b", " c", " e"}}}
	if got := cases[0].choices(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%q, want %q", got, want)
	}
	// " b" and " b", " y"; " c" and " c", " z".
	for pick, want := range map[int]string{-1: "[0 0]", 0: "[1 0]", 1: "[0 1]"} {
		got, err := askHidden(t.Context(), &picker{pick: pick}, cases, []int{0, 1})
		if err != nil || fmt.Sprint([]float64{got[0].Values["constrained"], got[1].Values["constrained"]}) != want {
			t.Errorf("option %d: %v, %v, want %s", pick, got, err, want)
		}
	}
}

// picker chooses the same option of every list.
type picker struct {
	knower
	pick int
}

func (p *picker) Choose(_ context.Context, reqs []eval.Choice) ([]int, error) {
	return slices.Repeat([]int{p.pick}, len(reqs)), nil
}

// Prompts of any length are nearly as long as asked for, and leave room for their answers.
func TestHiddenLengths(t *testing.T) {
	for _, name := range []string{"needle_hop", "ruler_variables", "ruler_common", "ruler_values", "needle"} {
		for _, length := range []int{230, 233, 236, 239, 242, 250, 4000, 32768} {
			opt := eval.Options{Seed: 3, Limit: 1, Shots: -1, Set: map[string]string{name + ".lengths": "0"}}
			j := prepared(t, lookup(t, name), opt, length)
			n := (len(j.Gold[0].Context) + 3) / 4 // as models without a tokenizer count
			if n+len(j.Gold[0].Text)+1 > length || n < length*8/10-40 {
				t.Errorf("%s: a prompt of %d tokens for a length of %d", name, n, length)
			}
		}
	}
}
