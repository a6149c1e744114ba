package task

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// The common sets of GLUE and SuperGLUE, with the prompts and scoring of lm-evaluation-harness; BoolQ, one of them, is
// in the group mc. Files have the fields of the published sets. MRPC and CB also publish F1.
func init() {
	for i, set := range glueSets {
		t := eval.Task{Name: set.name, Group: "glue", Version: 1, Doc: set.doc,
			Measures: []eval.Measure{{Name: "acc", Better: eval.Higher, Label: "accuracy, %"}},
			Settings: []eval.Setting{{Key: "same_shots", Default: false,
				Doc: "the same examples before every question, which is faster; the harness draws new ones each time"}},
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareMC(ctx, p, set.mc()) }}
		registerAt(22, i, t)
	}
}

// glueSet is one data set.
type glueSet struct {
	name, doc string
	choices   []string // nil: the row has its own
	prompt    func(r *glueRow) (string, error)
	f1        func(gold, said []int) float64
	make      func(g *rand.Rand) mcItem // a stand-in
}

var glueSets = []glueSet{
	{"cb", "CommitmentBank: does the text entail it?", []string{"True", "False", "Neither"},
		asks("%s\nQuestion: %s. True, False, or Neither?\nAnswer:", "premise", "hypothesis"),
		func(gold, said []int) float64 { return eval.MacroF1(gold, said, 3) },
		makeEntailed("%s\nQuestion: %s. True, False, or Neither?\nAnswer:", "True", "False", "Neither")},
	{"copa", "COPA: the likelier cause or effect", nil,
		func(r *glueRow) (string, error) { return COPAPrompt(r.Premise, r.Question) }, nil, makeCause},
	{"rte", "RTE: does the text entail it?", []string{"True", "False"},
		asks("%s\nQuestion: %s True or False?\nAnswer:", "sentence1", "sentence2"), nil,
		makeEntailed("%s\nQuestion: %s. True or False?\nAnswer:", "True", "False")},
	{"wic", "WiC: is a word used in the same way?", []string{"no", "yes"}, wicPrompt, nil, makeSame(
		"Sentence 1: %s\nSentence 2: %s\nQuestion: Is the word 'code' used in the same way in the two sentences " +
			"above?\nAnswer:")},
	{"wsc", "WSC: whom a pronoun means", []string{"no", "yes"}, func(r *glueRow) (string, error) {
		if err := eval.Missing("text", r.Text, "span1_text", r.Span1, "span2_text", r.Span2); err != nil {
			return "", err
		}
		return WSCPrompt(r.Text, r.Span1, r.Span2, r.At)
	}, nil, makePronoun},
	{"sst2", "SST-2: is a review positive?", []string{"negative", "positive"},
		asks("%s\nQuestion: Is this sentence positive or negative?\nAnswer:", "sentence"), nil, makeReview},
	{"mrpc", "MRPC: do two sentences mean the same?", []string{"no", "yes"},
		asks("Sentence 1: %s\nSentence 2: %s\nQuestion: Do both sentences mean the same thing?\nAnswer:",
			"sentence1", "sentence2"),
		func(gold, said []int) float64 { return eval.F1(gold, said, 1) },
		makeSame("Sentence 1: %s\nSentence 2: %s\nQuestion: Do both sentences mean the same thing?\nAnswer:")},
	{"qnli", "QNLI: does a sentence answer a question?", []string{"yes", "no"},
		asks("%s\n%s\nQuestion: Does this response answer the question?\nAnswer:", "question", "sentence"), nil,
		makeAnswered},
}

// mc is the set as multiple choice.
func (s *glueSet) mc() mcSet {
	return mcSet{name: s.name, test: "glue/" + s.name + "_val", train: "glue/" + s.name + "_train", accOnly: true,
		f1: s.f1, read: s.read, make: s.make}
}

// glueRow has the fields of all sets, as they are published.
type glueRow struct {
	Premise, Hypothesis, Question, Sentence, Sentence1, Sentence2 string
	Choice1, Choice2, Text                                        string
	Start1, End1                                                  int
	Span1                                                         string `json:"span1_text"`
	Span2                                                         string `json:"span2_text"`
	At                                                            int    `json:"span2_index"`
	Label                                                         any
}

// Check implements eval.Row; the set's own prompt reports missing texts.
func (r *glueRow) Check() error {
	if _, err := r.label(); err != nil {
		return err
	}
	return nil
}

// label is the class: a number, or a truth value.
func (r *glueRow) label() (int, error) {
	switch v := r.Label.(type) {
	case float64:
		if v >= 0 && v == float64(int(v)) {
			return int(v), nil
		}
	case bool:
		return int(truth(v)), nil
	}
	return 0, fmt.Errorf(
		"field \"label\" is %v, want the index of the right class; files without labels cannot be scored", r.Label)
}

func (s *glueSet) read(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	rows, err := eval.ReadSet[glueRow](ctx, p, file, limit)
	var out []mcItem
	for i := range rows {
		r := &rows[i]
		prompt, err := s.prompt(r)
		choices := s.choices
		if choices == nil {
			choices = []string{COPAChoice(r.Choice1), COPAChoice(r.Choice2)}
			err = errors.Join(err, eval.Missing("choice1", r.Choice1, "choice2", r.Choice2))
		}
		label, _ := r.label()
		if err == nil && label >= len(choices) {
			err = fmt.Errorf("field \"label\" is %d; there are %d classes", label, len(choices))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", file, i+1, err)
		}
		out = append(out, mcItem{fmt.Sprint(i), []string{prompt}, choices, label})
	}
	return out, err
}

// asks fills a prompt with fields, none of which may be missing.
func asks(format string, fields ...string) func(r *glueRow) (string, error) {
	return func(r *glueRow) (string, error) {
		known := map[string]string{"premise": r.Premise, "hypothesis": r.Hypothesis, "question": r.Question,
			"sentence": r.Sentence, "sentence1": r.Sentence1, "sentence2": r.Sentence2}
		var values []any
		for _, f := range fields {
			if err := eval.Missing(f, known[f]); err != nil {
				return "", err
			}
			values = append(values, known[f])
		}
		return fmt.Sprintf(format, values...), nil
	}
}

// wicPrompt identifies the word by its position in the first sentence.
func wicPrompt(r *glueRow) (string, error) {
	s := []rune(r.Sentence1)
	if r.Start1 < 0 || r.End1 > len(s) || r.Start1 >= r.End1 || strings.TrimSpace(r.Sentence2) == "" {
		return "", fmt.Errorf(
			"fields \"start1\" and \"end1\" are %d and %d, want a word of \"sentence1\", and \"sentence2\" a text",
			r.Start1, r.End1)
	}
	return "Sentence 1: " + r.Sentence1 + "\nSentence 2: " + r.Sentence2 + "\nQuestion: Is the word '" +
		string(s[r.Start1:r.End1]) + "' used in the same way in the two sentences above?\nAnswer:", nil
}

// fact is a sentence about a city's code, and one that says otherwise.
func fact(g *rand.Rand) (right, wrong, city string) {
	c := data.NewNeedle(g, data.NeedleOptions{Needles: 2, Bytes: 1})
	return "The magic code is " + c.Cities[0] + " " + c.Answers[0], "The magic code is " + c.Cities[0] + " " +
		c.OtherNumbers[0], c.Cities[0]
}

// makeEntailed asks whether a sentence follows from another; the third class is a sentence about another city.
func makeEntailed(format string, classes ...string) func(g *rand.Rand) mcItem {
	return func(g *rand.Rand) mcItem {
		right, wrong, city := fact(g)
		other, _, name := fact(g)
		for name == city {
			other, _, name = fact(g)
		}
		gold := g.IntN(len(classes))
		return mcItem{contexts: []string{fmt.Sprintf(format, right+".", []string{right, wrong, other}[gold])},
			endings: classes, gold: gold}
	}
}

// makeSame asks whether two sentences say the same.
func makeSame(format string) func(g *rand.Rand) mcItem {
	return func(g *rand.Rand) mcItem {
		right, wrong, _ := fact(g)
		gold := g.IntN(2)
		return mcItem{contexts: []string{fmt.Sprintf(format, right+".", []string{wrong, right}[gold]+".")},
			endings: []string{"no", "yes"}, gold: gold}
	}
}

// makeCause continues a number with its consequence.
func makeCause(g *rand.Rand) mcItem {
	x, y, more, less := 10+g.IntN(40), 51+g.IntN(40), "Ben", "Tom"
	if g.IntN(2) == 0 {
		x, y, more, less = y, x, less, more
	}
	return place(g, fmt.Sprintf("Tom has %d coins and Ben %d therefore", x, y), " "+strings.ToLower(more)+" has more.",
		" "+strings.ToLower(less)+" has more.")
}

// makePronoun asks whom "she" means.
func makePronoun(g *rand.Rand) mcItem {
	names := []string{"Anna", "Clara", "Nora", "Ruth", "Maya", "Olga"}
	g.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	gold := g.IntN(2)
	text := fmt.Sprintf("%s gave %s the key because she had asked for it .", names[0], names[1])
	prompt, err := WSCPrompt(text, names[gold], "she", 6)
	if err != nil {
		panic(err) // the position is valid in the text above
	}
	return mcItem{contexts: []string{prompt}, endings: []string{"no", "yes"}, gold: gold}
}

// makeReview asks for a review's tone.
func makeReview(g *rand.Rand) mcItem {
	gold := g.IntN(2)
	list := [2][]string{{"dull", "slow", "bad", "boring"}, {"good", "warm", "funny", "fine"}}[gold]
	return mcItem{contexts: []string{fmt.Sprintf(
		"story %d is %s and %s \nQuestion: Is this sentence positive or negative?\nAnswer:",
		g.IntN(100), list[g.IntN(4)], list[g.IntN(4)])}, endings: []string{"negative", "positive"}, gold: gold}
}

// makeAnswered asks whether a sentence answers a question about a city.
func makeAnswered(g *rand.Rand) mcItem {
	right, _, city := fact(g)
	other, _, name := fact(g)
	for name == city {
		other, _, name = fact(g)
	}
	gold := g.IntN(2)
	return mcItem{contexts: []string{"Which magic code begins with " + city + "?\n" + []string{right, other}[gold] +
		".\nQuestion: Does this response answer the question?\nAnswer:"}, endings: []string{"yes", "no"}, gold: gold}
}
