package task

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// Contextual hallucination (the paper's Table 4, after Lookback Lens): questions about passages and papers, and a
// summary of an article. The paper's news sets are not free; eLife digests replace them, under their own name. The
// prompts are our own.
//
// Measured by rule: exact match and F1 against the right answer, ROUGE-L, and the share of the output that occurs in
// the source. With a judge, as in the paper: a larger model that sees output and right answer decides whether it is
// accurate and free of hallucination.
func init() {
	better := func(name, label string) eval.Measure {
		return eval.Measure{Name: name, Better: eval.Higher, Label: label}
	}
	summary := []eval.Measure{better("rouge_l", "ROUGE-L, %"), better("grounded", "words found in the source, %"),
		better("judge", "accurate, says the judge, %"),
		{Name: "unclear", Better: eval.Lower, Label: "verdicts that are unclear, %"}}
	for i, set := range groundedSets {
		t := eval.Task{
			Name: set.name, Group: "hallucination", Version: 3, Shots: -1, Doc: set.doc,
			Measures: append([]eval.Measure{better("f1", "F1, %"), better("em", "exact match, %")}, summary...),
			Settings: []eval.Setting{
				{Key: "max_tokens", Default: set.tokens, Rule: eval.AtLeast(1), Doc: "most tokens of an answer"},
				{Key: "items", Default: 100, Rule: eval.AtLeast(1), Doc: "questions"},
			},
			Prepare: func(ctx context.Context, p *eval.Plan) (*eval.Job, error) { return prepareGrounded(ctx, p, set) },
		}
		if set.summary {
			t.Measures = summary
		}
		registerAt(100, i, t)
	}
}

// groundedItem is a source with its question.
type groundedItem struct {
	id, source string
	task       string // the question, after the source
	answer     string
	also       []string // other right answers
}

// best is the highest score of an output over the right answers.
func (q *groundedItem) best(said string, score func(said, right string) float64) float64 {
	out := score(said, q.answer)
	for _, right := range q.also {
		out = max(out, score(said, right))
	}
	return out
}

// trusted is the right answers as shown to the judge.
func (q *groundedItem) trusted() string {
	return strings.Join(append([]string{q.answer}, q.also...), "\nor: ")
}

// sameText is exact match.
func sameText(a, b string) float64 { return truth(normalText(a) == normalText(b)) }

// groundedSet is one data set.
type groundedSet struct {
	name, doc string
	file      string
	tokens    int
	summary   bool
	read      func(ctx context.Context, p *eval.Plan, file string, limit int) ([]groundedItem, error)
}

var groundedSets = []groundedSet{
	{"hotpotqa", "HotpotQA: questions over several passages", "longqa/hotpotqa_dev_subset", 32, false, readPassages},
	{"2wikimqa", "2WikiMultihopQA: questions over several passages", "longqa/2wikimultihopqa_dev_subset", 32, false,
		readPassages},
	{"qasper", "Qasper: questions about a paper", "longqa/qasper_leval", 64, false, readPapers},
	{"elife", "eLife digests: a plain-language summary of an article", "longqa/elife_digest_summ", 256, true,
		readArticles},
}

func prepareGrounded(ctx context.Context, p *eval.Plan, set groundedSet) (*eval.Job, error) {
	n := p.Limited(p.Int("items"))
	tokens := min(p.Int("max_tokens"), p.Context/4)
	if tokens < 1 {
		return nil, eval.BadSetting("a context of %d tokens has no room for a source and an answer", p.Context)
	}
	items, err := set.load(ctx, p, n)
	if err != nil {
		return nil, err
	}
	j := &eval.Job{Chunk: 16, Config: map[string]any{"source": p.Source(set.file), "used_max_tokens": tokens}}
	if p.Judge != nil {
		j.Config["judge"], j.Config["judge_prompt"] = p.JudgeName, judgePrompt("QUESTION", "RIGHT ANSWER", "OUTPUT")
	}
	cut := 0
	for i := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q := &items[i]
		// On one line, because outputs end at a line or paragraph break.
		q.answer = strings.Join(strings.Fields(q.answer), " ")
		whole := q.source
		q.source = fitMiddle(p, whole, p.Context-tokens-p.Count(q.task))
		if len(q.source) < len(whole) {
			cut++
		}
		j.IDs = append(j.IDs, fmt.Sprintf("%d %s", i, q.id))
		j.Gold = append(j.Gold, eval.Continuation{Context: q.source + q.task, Text: " " + q.answer})
	}
	j.Config["sources_cut"] = cut // cut to the context, in the middle
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		return askGrounded(ctx, lm, p.Judge, items, which, tokens, set.summary)
	}
	return j, nil
}

func (set *groundedSet) load(ctx context.Context, p *eval.Plan, n int) ([]groundedItem, error) {
	if p.Data != "" {
		return set.read(ctx, p, set.file, n)
	}
	g := p.Rand("stand-in")
	var out []groundedItem
	for i := range min(n, standInTexts) {
		q := makeGrounded(g)
		if set.summary {
			q = makeSummary(g)
		}
		q.id = fmt.Sprint(i)
		out = append(out, q)
	}
	return out, nil
}

// fitMiddle removes words from the middle of a text until it has at most this many tokens, because beginning and end
// are the most informative.
func fitMiddle(p *eval.Plan, text string, tokens int) string {
	for keep := len(text); ; {
		n := p.Count(text)
		if n <= tokens || keep < 8 {
			return text
		}
		keep = min(keep*max(tokens, 0)/n*15/16, keep-1)
		text = strings.ToValidUTF8(text[:keep/2], "") + " … " + strings.ToValidUTF8(text[len(text)-keep/2:], "")
	}
}

// askGrounded generates, scores by rule, and asks the judge if there is one.
func askGrounded(ctx context.Context, lm, judge eval.LM, items []groundedItem, which []int, tokens int,
	summary bool) ([]eval.Answer, error) {
	reqs := make([]eval.Generation, len(which))
	for i, w := range which {
		reqs[i] = eval.Generation{Prompt: items[w].source + items[w].task, Until: []string{"\n"}, MaxTokens: tokens}
		if summary {
			reqs[i].Until = []string{"\n\n"}
		}
	}
	texts, err := lm.GenerateUntil(ctx, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]eval.Answer, len(which))
	for i, w := range which {
		q, said := &items[w], strings.TrimSpace(texts[i])
		v := map[string]float64{"rouge_l": q.best(said, rougeL), "grounded": grounded(said, q.source)}
		if !summary {
			v["em"], v["f1"] = q.best(said, sameText), q.best(said, wordF1)
		}
		out[i] = eval.Answer{Values: v,
			Doc: map[string]any{"prompt": reqs[i].Prompt, "answer": said, "wanted": q.answer}}
	}
	if judge == nil {
		return out, nil
	}
	asked := make([]eval.Generation, len(which))
	for i, w := range which {
		asked[i] = eval.Generation{Prompt: judgePrompt(strings.TrimSpace(items[w].task), items[w].trusted(), texts[i]),
			MaxTokens: 8}
	}
	return out, judged(ctx, judge, asked, out)
}

// judgeTries is the number of attempts for a clear verdict.
const judgeTries = 3

// judged adds the judge's verdicts. A verdict that is neither yes nor no is requested again, then counted in the
// measure "unclear", and the sample has no "judge".
func judged(ctx context.Context, judge eval.LM, asked []eval.Generation, out []eval.Answer) error {
	open := make([]int, len(out))
	for i := range open {
		open[i] = i
		out[i].Values["unclear"] = 1
	}
	for try := 0; len(open) > 0 && try < judgeTries; try++ {
		reqs := make([]eval.Generation, len(open))
		for k, i := range open {
			reqs[k] = asked[i]
			if try > 0 { // a deterministic judge needs a different prompt
				reqs[k].Prompt = strings.TrimSuffix(asked[i].Prompt, "Reply:") +
					strings.Repeat("Say only yes or no. ", try) + "Reply:"
			}
		}
		said, err := judge.GenerateUntil(ctx, reqs)
		if err != nil {
			return fmt.Errorf("judge: %w", err)
		}
		var again []int
		for k, i := range open {
			out[i].Doc["judge"] = said[k]
			v := eval.BeginsWith(said[k], []string{"yes", "no"})
			if v < 0 {
				again = append(again, i)
				continue
			}
			out[i].Values["judge"], out[i].Values["unclear"] = truth(v == 0), 0
		}
		open = again
	}
	return nil
}

// judgePrompt is the prompt of the judge.
func judgePrompt(question, right, output string) string {
	return "You check a model's output against a trusted answer.\n\nTask given to the model:\n" + question +
		"\n\nTrusted answer:\n" + right + "\n\nThe model's output:\n" + strings.TrimSpace(output) +
		"\n\nIs the output accurate and free of anything that the trusted answer does not support? Reply with one " +
		"word, yes or no.\nReply:"
}

// makeGrounded is a stand-in: codes hidden in a story, and a question about one.
func makeGrounded(g *rand.Rand) groundedItem {
	c := data.NewNeedle(g, data.NeedleOptions{Needles: 2, Depth: g.Float64(), Bytes: 400})
	return groundedItem{source: c.Prompt[:c.QuerySpan[0]], task: c.Prompt[c.QuerySpan[0]:], answer: c.Answers[0]}
}

// makeSummary is a stand-in: the first sentence of a story is its summary.
func makeSummary(g *rand.Rand) groundedItem {
	story := data.Prose(g, 400)
	first, _, _ := strings.Cut(story, ". ")
	return groundedItem{source: story + "\n", task: "Summary:", answer: first + "."}
}
