package harness

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"antiphase/eval"
	"antiphase/tokenizer/chat"
)

// bound is a specification with its documents.
type bound struct {
	*spec
	fields
	docs   []map[string]any
	pool   []map[string]any // from which examples are drawn
	source string
}

// item is a rendered question.
type item struct {
	doc      map[string]any
	contexts []string // one, or one for each choice
	choices  []string
	conts    []string // continuations of multiple_choice and loglikelihood; the text of loglikelihood_rolling
	right    []int    // indices of the right choices
	targets  []string // right answers of generate_until
	gold     eval.Continuation
}

// bind reads the documents.
func (s *spec) bind(ctx context.Context, p *eval.Plan) (*bound, error) {
	for _, f := range s.files {
		if err := p.Uses(ctx, f); err != nil {
			return nil, err
		}
	}
	split := s.splits.test
	if split == "" {
		split = s.splits.valid
	}
	b := &bound{spec: s, source: s.data.path}
	b.columns, b.templates, b.choices = map[string]bool{}, map[string]*chat.Template{}, s.ask.choice != nil
	if s.data.files != nil {
		b.source = strings.Join(s.data.files[split], " ")
	}
	var err error
	if b.docs, err = s.load(ctx, p, split, p.Limit); err != nil {
		return nil, err
	}
	for _, doc := range b.docs {
		for key := range doc {
			b.columns[key] = true
		}
	}
	if p.Shots > 0 {
		err = b.readPool(ctx, p)
	}
	return b, err
}

// readPool finds the documents for examples: the split named, the file's own samples, or the first of train, validation
// and test.
func (b *bound) readPool(ctx context.Context, p *eval.Plan) (err error) {
	split := b.splits.shots
	for _, s := range []string{b.splits.train, b.splits.valid, b.splits.test} {
		if split == "" {
			split = s
		}
	}
	if b.samples != nil && b.splits.shots == "" {
		b.pool = b.samples
	} else if b.pool, err = b.load(ctx, p, split, 0); err != nil {
		return fmt.Errorf("examples: %w", err)
	}
	if b.indices != nil && b.sampler == "default" {
		var some []map[string]any
		for _, i := range b.indices {
			if i < 0 || i >= len(b.pool) {
				return fmt.Errorf("fewshot_indices has %d; there are %d documents", i, len(b.pool))
			}
			some = append(some, b.pool[i])
		}
		b.pool = some
	}
	return nil
}

// draw returns the examples of one question. The question itself is excluded if examples may come from the questions'
// own split.
func (b *bound) draw(g *python, doc map[string]any, n int) ([]map[string]any, error) {
	if n <= 0 {
		return nil, nil
	}
	own := b.splits.shots == b.splits.test // the harness's test, also if neither is set
	keep := func(d map[string]any) bool { return !own || !reflect.DeepEqual(d, doc) }
	var out []map[string]any
	if b.sampler == "first_n" {
		for _, d := range b.pool { // the harness also excludes the question from these
			if keep(d) && len(out) < n {
				out = append(out, d)
			}
		}
	} else {
		wanted := n
		if own {
			wanted++
		}
		if wanted > len(b.pool) {
			return nil, fmt.Errorf("%d examples are asked for, there are %d documents to draw from", n, len(b.pool))
		}
		for _, i := range g.sample(len(b.pool), wanted) {
			if d := b.pool[i]; keep(d) && len(out) < n {
				out = append(out, d)
			}
		}
	}
	if len(out) < n {
		return nil, fmt.Errorf("%d examples are asked for, there are %d", n, len(out))
	}
	return out, nil
}

// head is everything before a question: the description and the examples.
func (b *bound) head(g *python, doc map[string]any, n int) (string, error) {
	var out strings.Builder
	if s, ok := b.description.(string); ok && s != "" {
		text, err := b.resolve(s, doc)
		if err != nil {
			return "", fmt.Errorf("description: %w", err)
		}
		out.WriteString(text)
	}
	list, err := b.draw(g, doc, n)
	if err != nil {
		return "", err
	}
	for _, d := range list {
		text, err := b.solved(d)
		if err != nil {
			return "", fmt.Errorf("example: %w", err)
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// resolve is a field of the document, or a template.
func (b *bound) resolve(s string, doc map[string]any) (string, error) {
	if v, ok := doc[s]; ok {
		return fmt.Sprint(simple(v)), nil
	}
	return b.render(s, doc)
}

// solved is a document with its answer, as an example.
func (b *bound) solved(doc map[string]any) (string, error) {
	q, err := b.text(b.shot.text, doc)
	if err != nil {
		return "", fmt.Errorf("doc_to_text: %w", err)
	}
	a, err := b.target(b.shot.target, doc)
	if err != nil {
		return "", fmt.Errorf("doc_to_target: %w", err)
	}
	var choices []string
	if b.shot.choice != nil {
		if choices, err = b.list(b.shot.choice, doc); err != nil {
			return "", fmt.Errorf("doc_to_choice: %w", err)
		}
	}
	if i, ok := q.(int); ok && choices != nil { // choices are whole questions
		if q, err = pick(choices, i); err != nil {
			return "", err
		}
		choices = nil
	}
	question, ok := q.(string)
	if !ok {
		return "", fmt.Errorf("doc_to_text gives %v, want a text", q)
	}
	answer, err := answerText(a, choices)
	if err != nil || answer == "" {
		return question, err
	}
	prefix, err := b.prefix(b.shot.prefix, doc)
	if err != nil {
		return "", err
	}
	delimiter := b.shot.targetDelimiter
	if prefix != "" && !apart(question, prefix) {
		delimiter = ""
	}
	if prefix != "" && apart(prefix, answer) {
		prefix += " "
	}
	return question + delimiter + prefix + answer + b.shot.delimiter, nil
}

// answerText is the text of an answer: for an index its choice, for several the first.
func answerText(a any, choices []string) (string, error) {
	if list, ok := a.([]any); ok && len(list) > 0 {
		a = list[0]
	}
	switch a := a.(type) {
	case nil:
		return "", nil
	case string:
		return a, nil
	case int:
		if choices != nil {
			return pick(choices, a)
		}
	}
	return "", fmt.Errorf("doc_to_target gives %v, want a text or the index of a choice", a)
}

func pick(choices []string, i int) (string, error) {
	if i < 0 || i >= len(choices) {
		return "", fmt.Errorf("the index %d is outside of %d choices", i, len(choices))
	}
	return choices[i], nil
}

// prefix is the beginning of an answer.
func (b *bound) prefix(spec any, doc map[string]any) (string, error) {
	s, ok := spec.(string)
	if !ok || s == "" {
		return "", nil
	}
	text, err := b.resolve(s, doc)
	if err != nil {
		return "", fmt.Errorf("gen_prefix: %w", err)
	}
	return text, nil
}

// apart reports whether two texts need a space between them.
func apart(a, b string) bool {
	last, n := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	return n > 0 && !unicode.IsSpace(last) && !unicode.IsSpace(first)
}

// items renders all questions.
func (b *bound) items(ctx context.Context, p *eval.Plan) ([]item, error) {
	g := newPython(uint64(p.Int("fewshot_seed")))
	out := make([]item, len(b.docs))
	for i, doc := range b.docs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		head, err := b.head(g, doc, p.Shots)
		if err == nil {
			out[i], err = b.item(head, doc)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
	}
	return out, nil
}

// item writes out one question.
func (b *bound) item(head string, doc map[string]any) (x item, err error) {
	x.doc = doc
	target, err := b.target(b.ask.target, doc)
	if err != nil {
		return x, fmt.Errorf("doc_to_target: %w", err)
	}
	if b.kind == "loglikelihood_rolling" {
		text, err := answerText(target, nil)
		x.conts = []string{text}
		return x, err
	}
	if b.ask.choice != nil {
		if x.choices, err = b.list(b.ask.choice, doc); err != nil {
			return x, fmt.Errorf("doc_to_choice: %w", err)
		}
	}
	q, err := b.text(b.ask.text, doc)
	if err != nil {
		return x, fmt.Errorf("doc_to_text: %w", err)
	}
	prefix, err := b.prefix(b.ask.prefix, doc)
	if err != nil {
		return x, err
	}
	begin := func(question string) string {
		if prefix != "" && apart(question, prefix) {
			question += b.ask.targetDelimiter
		}
		return head + question + prefix
	}
	if i, ok := q.(int); ok && x.choices != nil {
		err = b.severalInputs(&x, i, target, func(c string) string { return head + c + prefix })
		return x, err
	}
	question, ok := q.(string)
	if !ok {
		return x, fmt.Errorf("doc_to_text gives %v, want a text", q)
	}
	x.contexts = []string{begin(question)}
	err = kindItem[b.kind](b.spec, &x, target)
	return x, err
}

// severalInputs is a question whose choices are in the context, before one ending.
func (b *bound) severalInputs(x *item, right int, target any, begin func(string) string) error {
	if b.kind != "multiple_choice" {
		return errors.New("doc_to_text gives an index, which only multiple_choice can take")
	}
	if _, err := pick(x.choices, right); err != nil {
		return err
	}
	ending, err := answerText(target, nil)
	if err != nil {
		return err
	}
	for _, c := range x.choices {
		x.contexts, x.conts = append(x.contexts, begin(c)), append(x.conts, b.ask.targetDelimiter+ending)
	}
	x.right = []int{right}
	x.gold = eval.Continuation{Context: x.contexts[right], Text: x.conts[right]}
	return nil
}
