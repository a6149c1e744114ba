package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/eval"
)

// The paper's eight sets of Appendix C: a chain of thought is generated after solved examples; its final answer is
// extracted and compared by meaning. The paper's prompts are not public; ours have the harness's form for GSM8K,
// "Question: …\nAnswer: …", with examples from the set if it has solutions, otherwise from GSM8K's training split.
func init() {
	for i, set := range mathSets {
		registerAt(110, i, eval.Task{
			Name: set.name, Group: "math", Version: 3, Shots: 5, Doc: set.doc,
			Measures: []eval.Measure{{Name: "acc", Better: eval.Higher, Label: "accuracy, %"},
				{Name: "length", Label: "length of the reasoning, tokens"}},
			Settings: []eval.Setting{{Key: "max_tokens", Default: 256, Rule: eval.AtLeast(1),
				Doc: "most tokens of a chain of thought; the paper takes 1024 and 16384"}},
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareMath(ctx, p, set) },
		})
	}
}

// mathSet is one data set.
type mathSet struct {
	name, doc string
	test      string
	train     string // examples; if empty they are other rows of test
}

const gsm8kTrain = "math/gsm8k_train"

var mathSets = []mathSet{
	{"gsm8k", "GSM8K: grade-school word problems", "math/gsm8k_test", gsm8kTrain},
	{"competition_math", "MATH: competition problems", "math/math_test", ""},
	{"svamp", "SVAMP: varied word problems", "math/svamp_test", gsm8kTrain},
	{"asdiv", "ASDiv: diverse word problems", "math/asdiv_test", gsm8kTrain},
	{"mawps", "MAWPS: word problems", "math/mawps_test", gsm8kTrain},
	{"carp_en", "CARP: algebra, English", "math/carp_en_test", ""},
	{"tabmwp", "TabMWP: problems about tables", "math/tabmwp_test1k", ""},
	{"college_math", "CollegeMath: college exercises", "math/college_math_test", gsm8kTrain},
}

// mathRow has the fields of all sets.
type mathRow struct {
	Question string   `json:"question"`
	Problem  string   `json:"problem"`
	Solution string   `json:"solution"`
	Answer   string   `json:"answer"`
	Title    string   `json:"table_title"`
	Table    string   `json:"table"`
	Choices  []string `json:"choices"`
	Unit     string   `json:"unit"`
}

func (r *mathRow) Check() error {
	if r.Problem == "" {
		if err := eval.Missing("question", r.Question); err != nil {
			return err
		}
	}
	return eval.Missing("answer", r.Answer)
}

// prompt is the question as it is asked.
func (r *mathRow) prompt() string {
	var b strings.Builder
	b.WriteString("Question: ")
	if r.Table != "" {
		if r.Title != "" {
			b.WriteString(r.Title + "\n")
		}
		b.WriteString(r.Table + "\n")
	}
	b.WriteString(r.Question + r.Problem)
	if r.Unit != "" {
		b.WriteString(" (unit: " + r.Unit + ")")
	}
	if len(r.Choices) > 0 {
		b.WriteString(" Choices: " + strings.Join(r.Choices, ", ") + ".")
	}
	return b.String() + "\nAnswer:"
}

// solved is the question with its solution, which ends in the answer.
func (r *mathRow) solved() string {
	s := r.prompt() + " " + strings.TrimSpace(r.Solution)
	if !sameAnswer(extractAnswer(r.Solution), r.Answer) {
		s += "\n#### " + r.Answer
	}
	return s
}

func prepareMath(ctx context.Context, p *eval.Plan, set mathSet) (*eval.Job, error) {
	rows, pool, err := set.load(ctx, p)
	if err != nil {
		return nil, err
	}
	tokens := min(p.Int("max_tokens"), p.Context/2)
	if tokens < 1 {
		return nil, eval.BadSetting("a context of %d tokens has no room for a question and an answer", p.Context)
	}
	j := &eval.Job{Chunk: 32, Config: map[string]any{"source": p.Source(set.test), "used_max_tokens": tokens}}
	g := p.Rand("shots")
	var prompts []string
	examples := 0
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		head, n := shotsThatFit(p, g, pool, &rows[i], tokens)
		examples += n
		prompts = append(prompts, head+rows[i].prompt())
		j.IDs = append(j.IDs, fmt.Sprint(i))
		j.Gold = append(j.Gold, eval.Continuation{Context: prompts[i], Text: " #### " + rows[i].Answer})
	}
	j.Config["examples_fit"] = float64(examples) / float64(len(rows)) // how many, on average
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		reqs := make([]eval.Generation, len(which))
		for i, w := range which {
			reqs[i] = eval.Generation{Prompt: prompts[w], Until: []string{"\nQuestion:", "\n\nQuestion"},
				MaxTokens: tokens}
		}
		texts, err := lm.GenerateUntil(ctx, reqs)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			said := extractAnswer(texts[i])
			out[i] = eval.Answer{Values: map[string]float64{"acc": truth(sameAnswer(said, rows[w].Answer)),
				"length": float64(p.Count(texts[i]) - p.Count(""))},
				Doc: map[string]any{"prompt": prompts[w], "text": texts[i], "answer": said, "wanted": rows[w].Answer}}
		}
		return out, nil
	}
	return j, nil
}

// load returns the questions and the pool of examples.
func (set *mathSet) load(ctx context.Context, p *eval.Plan) (rows, pool []mathRow, err error) {
	if p.Data == "" {
		g := p.Rand("stand-in")
		for range p.Limited(standInTexts) {
			rows = append(rows, makeMath(g))
		}
		for range 4 * max(p.Shots, 0) {
			pool = append(pool, makeMath(g))
		}
		return rows, pool, nil
	}
	if rows, err = eval.ReadSet[mathRow](ctx, p, set.test, p.Limit); err != nil || p.Shots <= 0 {
		return rows, nil, err
	}
	file := set.train
	if file == "" {
		file = set.test
	}
	all, err := eval.ReadSet[mathRow](ctx, p, file, 0)
	for _, r := range all {
		if r.Solution != "" {
			pool = append(pool, r)
		}
	}
	if err == nil && len(pool) <= p.Shots {
		err = eval.BadSetting("%d examples are asked for, %s has %d with a solution", p.Shots, file, len(pool))
	}
	return rows, pool, err
}

// shotsThatFit is up to the requested number of solved examples, as far as the context has room besides question and
// answer; and how many they are.
func shotsThatFit(p *eval.Plan, g *rand.Rand, pool []mathRow, q *mathRow, tokens int) (text string, n int) {
	room := p.Context - tokens - p.Count(q.prompt())
	var b strings.Builder
	for _, i := range g.Perm(len(pool)) {
		x := &pool[i]
		if n == p.Shots {
			break
		}
		if x.Question+x.Problem == q.Question+q.Problem {
			continue
		}
		if room -= p.Count(x.solved() + "\n\n"); room < 0 {
			break
		}
		n++
		b.WriteString(x.solved() + "\n\n")
	}
	return b.String(), n
}

// standInTexts is the number of questions in a generated set whose answers are written out.
const standInTexts = 40

// makeMath is a stand-in: one or two steps of arithmetic in words.
func makeMath(g *rand.Rand) mathRow {
	pick := func(list ...string) string { return list[g.IntN(len(list))] }
	name, thing := pick("Anna", "Tom", "Clara", "Peter"), pick("apples", "coins", "shells", "books")
	x, y, z := 10+g.IntN(40), 1+g.IntN(30), 1+g.IntN(9)
	q := fmt.Sprintf("%s has %d %s and finds %d more.", name, x, thing, y)
	total, solution := x+y, fmt.Sprintf("%d + %d = %d", x, y, x+y)
	if g.IntN(2) == 0 {
		q += fmt.Sprintf(" Then %s gives away %d.", name, z)
		solution += fmt.Sprintf("\n%d - %d = %d", total, z, total-z)
		total -= z
	}
	q += fmt.Sprintf(" How many %s does %s have?", thing, name)
	return mathRow{Question: q, Solution: fmt.Sprintf("%s\n#### %d", solution, total), Answer: fmt.Sprint(total)}
}
