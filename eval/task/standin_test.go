package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// truths solve stand-ins by reading them: the ending that is right, by the context alone.
var truths = map[string]func(q *mcItem) string{
	"arc_challenge": sumOf, "arc_easy": sumOf,
	"boolq": func(q *mcItem) string {
		body, question, _ := strings.Cut(q.contexts[0], "Question: is the magic code of ")
		city, number, _ := strings.Cut(strings.TrimSuffix(question, "?\nAnswer:"), " ")
		return yesNo(strings.Contains(body, "The magic code is "+city+" "+number+"."))
	},
	"openbookqa": func(q *mcItem) string {
		var step, a, b, c, d int
		fmt.Sscanf(q.contexts[0], "count by %d: %d %d %d %d", &step, &a, &b, &c, &d)
		if b-a != step || c-b != step || d-c != step {
			return ""
		}
		return fmt.Sprint(d + step)
	},
	"piqa": func(q *mcItem) string {
		for _, e := range q.endings {
			var x, y int
			var word string
			fmt.Sscanf(q.contexts[0]+" "+e, "%d is %s than %d", &x, &word, &y)
			if word == "greater" && x > y || word == "less" && x < y {
				return e
			}
		}
		return ""
	},
	"winogrande": func(q *mcItem) string { // of contexts the one whose city has the code that follows
		for _, c := range q.contexts {
			city := c[strings.LastIndexByte(c, ' ')+1:]
			if strings.Contains(c, "The magic code is "+city+" "+q.endings[0]) {
				return c
			}
		}
		return ""
	},
	"lambada_openai": func(q *mcItem) string {
		city := q.contexts[0][strings.LastIndexByte(q.contexts[0], ' ')+1:]
		_, after, _ := strings.Cut(q.contexts[0], "The magic code is "+city+" ")
		number, _, _ := strings.Cut(after, ".")
		return number
	},
	"cb": entailed, "rte": entailed,
	"copa": func(q *mcItem) string {
		var tom, ben int
		fmt.Sscanf(q.contexts[0], "Tom has %d coins and Ben %d therefore", &tom, &ben)
		return map[bool]string{true: " tom has more.", false: " ben has more."}[tom > ben]
	},
	"wsc": func(q *mcItem) string {
		passage, question, _ := strings.Cut(strings.TrimPrefix(q.contexts[0], "Passage: "), "\n")
		// "A gave B the key because *she* had asked for it": she is B, whose wish was granted.
		words := strings.Fields(passage)
		if words[6] != "*she*" || words[2] == words[0] {
			return ""
		}
		return yesNo(strings.Contains(question, `refer to "*`+words[2]+`*"`))
	},
	"sst2": func(q *mcItem) string {
		good := slices.ContainsFunc([]string{"good", "warm", "funny", "fine"},
			func(w string) bool { return strings.Contains(q.contexts[0], w) })
		return map[bool]string{true: "positive", false: "negative"}[good]
	},
	"wic": sameSentences, "mrpc": sameSentences,
	"qnli": func(q *mcItem) string {
		question, answer, _ := strings.Cut(strings.TrimPrefix(q.contexts[0], "Which magic code begins with "), "?\n")
		return yesNo(strings.HasPrefix(answer, "The magic code is "+question+" "))
	},
}

func yesNo(yes bool) string { return map[bool]string{true: "yes", false: "no"}[yes] }

func sumOf(q *mcItem) string {
	var x, y int
	fmt.Sscanf(q.contexts[0], "%d + %d =", &x, &y)
	return fmt.Sprint(x + y)
}

func sameSentences(q *mcItem) string {
	lines := strings.Split(q.contexts[0], "\n")
	return yesNo(strings.TrimPrefix(lines[0], "Sentence 1: ") == strings.TrimPrefix(lines[1], "Sentence 2: "))
}

// entailed: the same sentence is true, one about the same city false, one about another neither.
func entailed(q *mcItem) string {
	premise, rest, _ := strings.Cut(q.contexts[0], "\nQuestion: ")
	premise = strings.TrimSuffix(premise, ".")
	hypothesis, _, _ := strings.Cut(rest, ". ")
	city := func(s string) string { return strings.Fields(s)[4] }
	switch {
	case premise == hypothesis:
		return "True"
	case city(premise) == city(hypothesis):
		return "False"
	}
	return "Neither"
}

// The right answers of generated questions are right, wrong ones are wrong and differ, every place holds the right one
// in its share of questions, and no text is the answer to most.
func TestStandInsAreTrue(t *testing.T) {
	sets := slices.Clone(mcSets)
	for i := range glueSets {
		sets = append(sets, glueSets[i].mc())
	}
	for _, set := range sets {
		solve := truths[set.name]
		below, above := 0, 0 // wrong answers that are smaller and larger numbers than the right one
		if set.name == "hellaswag" {
			storiesEnd(t, set)
		}
		if solve == nil {
			if set.name != "hellaswag" { // stories have no rule
				t.Errorf("%s has no solver", set.name)
			}
			continue
		}
		g := rand.New(rand.NewPCG(4, 4))
		places, texts := map[int]int{}, map[string]int{}
		for range 200 {
			q := set.make(g)
			right := q.ending(q.gold)
			if len(q.contexts) > 1 {
				right = q.context(q.gold)
			}
			if got := solve(&q); got != right {
				t.Fatalf("%s: %q with %q: %q is called right, %q is", set.name, q.contexts, q.endings, right, got)
			}
			for i, e := range q.endings {
				if strings.HasPrefix(set.name, "arc_") && atoi(t, e) != atoi(t, right) {
					below, above = below+int(truth(atoi(t, e) < atoi(t, right))),
						above+int(truth(atoi(t, e) > atoi(t, right)))
				}
				if slices.Contains(q.endings[:i], e) {
					t.Errorf("%s: %q twice in %q", set.name, e, q.endings)
				}
			}
			places[q.gold]++
			texts[right]++
		}
		if strings.HasPrefix(set.name, "arc_") && (below < 200 || above < 200) {
			t.Errorf("%s: %d wrong answers below, %d above the right one", set.name, below, above)
		}
		for text, n := range texts {
			if n > 130 {
				t.Errorf("%s: the answer is %q in %d of 200 questions", set.name, text, n)
			}
		}
		q := set.make(g)
		for k := range q.choices() {
			if share := float64(places[k]) / 200; share < 0.5/float64(q.choices()) && !set.single {
				t.Errorf("%s: the answer is in place %d in %.2f of the questions", set.name, k, share)
			}
		}
	}
}

// storiesEnd checks stories: whole sentences, of which the last is the right ending, and three other last sentences.
func storiesEnd(t *testing.T, set mcSet) {
	t.Helper()
	g := rand.New(rand.NewPCG(4, 5))
	for range 50 {
		q := set.make(g)
		if q.choices() != 4 || !strings.HasSuffix(q.contexts[0], ".") ||
			strings.Contains(q.contexts[0], q.ending(q.gold)) {
			t.Errorf("%q goes on with one of %q", q.contexts, q.endings)
		}
		for i, e := range q.endings {
			if strings.Contains(e, ". ") || !strings.HasSuffix(e, ".") || i != q.gold && e == q.ending(q.gold) {
				t.Errorf("the ending %q of %q", e, q.endings)
			}
		}
	}
}

// Arithmetic in words is solved by its own steps; a summary is the story's first sentence, a code the hidden one.
func TestStandInTextsAreTrue(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 5))
	steps := map[bool]int{}
	for range 100 {
		m := makeMath(g)
		n := numbers(m.Question)
		total := atoi(t, n[0]) + atoi(t, n[1])
		if len(n) > 2 {
			total -= atoi(t, n[2])
		}
		steps[len(n) > 2]++
		if m.Answer != fmt.Sprint(total) || !strings.HasSuffix(m.Solution, "#### "+m.Answer) || len(n) > 3 {
			t.Fatalf("%q: %s by %q, want %d", m.Question, m.Answer, m.Solution, total)
		}
		q := makeGrounded(g)
		key := strings.Fields(q.task)[len(strings.Fields(q.task))-1]
		if !strings.Contains(q.source, "The magic code is "+key+" "+q.answer+".") ||
			strings.Contains(q.task, q.answer) {
			t.Fatalf("%q: %q", q.task, q.answer)
		}
		s := makeSummary(g)
		if !strings.HasPrefix(s.source, s.answer) || strings.Count(s.answer, ". ") > 0 {
			t.Fatalf("%q is not the first sentence of %q", s.answer, s.source)
		}
	}
	if steps[true] < 20 || steps[false] < 20 {
		t.Errorf("%v problems of two steps and one", steps)
	}
}

func atoi(t *testing.T, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Of a generated labelling task the questions are a hundred texts that are not among the examples, each of a class that
// examples have.
func TestStandInLabels(t *testing.T) {
	for _, set := range iclSets {
		train, test := standInShots(rand.New(rand.NewPCG(6, 6)), set.classes)
		seen, labels := map[string]bool{}, map[string]bool{}
		for _, x := range train {
			seen[x.text], labels[x.label] = true, true
		}
		if len(test) != 100 || len(seen) != len(train) || len(labels) != set.classes {
			t.Errorf("%s: %d questions, %d of %d examples, %d classes", set.name, len(test), len(seen),
				len(train), len(labels))
		}
		for _, x := range test {
			if seen[x.text] || !labels[x.label] {
				t.Fatalf("%s: %+v is an example, or of no class", set.name, x)
			}
		}
	}
	opt := eval.Options{Seed: 1, Set: map[string]string{"icl.items": "7"}}
	j := prepared(t, lookup(t, "icl_trec"), opt, 400)
	if j.Config["classes"] != 2 || j.Floors["acc"]["chance"] != 0.5 ||
		!strings.HasPrefix(j.Gold[0].Context, "Text: ") || !strings.HasSuffix(j.Gold[0].Context, "\nLabel:") {
		t.Errorf("%v, %v, %q", j.Config, j.Floors, j.Gold[0])
	}
}
