package eval

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"antiphase/tokenizer"
)

// Setting is a parameter of a task: "needle.lengths=512,1024" sets lengths of the task or group needle. The type of the
// default (int, float64, string, bool, []int, []float64, []string) determines how it is parsed.
type Setting struct {
	Key     string
	Default any
	Rule    Rule // which values of the type it may have
	Doc     string
}

// read parses a setting's text and applies the rule. Errors name the setting; the caller knows the task.
func (s *Setting) read(text string) (any, error) {
	v, err := readSetting(s.Default, text)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", s.Key, text, err)
	}
	return v, s.Rule.check(s.Key, v)
}

// Plan is the input of a task's Prepare: the user's options with the task's settings resolved.
type Plan struct {
	*Options
	Context int                  // tokens: the smallest context of the models
	Count   func(string) int     // tokens of a text, by the first model that can count them
	Shots   int                  // solved examples before each question
	Tokens  *tokenizer.Tokenizer // of the first of our own models; may be nil
	Values  map[string]any       // settings
	task    *Task
	files   map[string]string // hashes of the files that were read
}

// plan resolves a task's settings: its defaults, then those fixed by With, then the user's.
func (o *Options) plan(t *Task) (*Plan, error) {
	p := &Plan{Options: o, task: t, Context: o.context, Count: o.count, Tokens: o.tokens, Shots: t.Shots,
		Values: map[string]any{}, files: map[string]string{}}
	if o.Shots >= 0 && t.Shots >= 0 {
		p.Shots = o.Shots
	}
	if p.Shots > p.Context {
		return nil, BadSetting("%d examples before each question do not fit a context of %d tokens", p.Shots, p.Context)
	}
	for _, s := range t.Settings {
		p.Values[s.Key] = s.Default
		texts := []string{}
		if text, ok := t.preset[s.Key]; ok {
			texts = append(texts, text)
		}
		for _, name := range []string{t.Group, t.Name} {
			if text, ok := o.Set[name+"."+s.Key]; ok && name != "" {
				texts = append(texts, text)
			}
		}
		for _, text := range texts {
			v, err := s.read(text)
			if err != nil {
				return nil, &InputError{err, true}
			}
			p.Values[s.Key] = v
		}
	}
	if t.Valid != nil {
		return p, t.Valid(p)
	}
	return p, nil
}

// Check rejects settings of a task that make no sense for a model with this context. It reads no files and needs no
// tokenizer, so it can precede everything that takes time.
func (o *Options) Check(t *Task, context int) error {
	at := *o
	at.context = context
	_, err := at.plan(t)
	return err
}

// CheckSettings rejects keys that none of the tasks has, and values that a task cannot use.
func (o *Options) CheckSettings(tasks []Task) error {
	if err := o.checkKeys(tasks); err != nil {
		return err
	}
	for i := range tasks {
		if err := o.Check(&tasks[i], o.context); err != nil {
			return fmt.Errorf("%s: %w", tasks[i].Name, err)
		}
	}
	return nil
}

// checkKeys rejects keys that none of the tasks has.
func (o *Options) checkKeys(tasks []Task) error {
	var known []string
	for _, t := range tasks {
		for _, s := range t.Settings {
			known = append(known, t.Name+"."+s.Key)
			if t.Group != "" {
				known = append(known, t.Group+"."+s.Key)
			}
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, key := range slices.Sorted(maps.Keys(o.Set)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("setting %q is unknown; the tasks asked for have %s", key, strings.Join(known, ", "))
		}
	}
	return nil
}

// readSetting reads text as the type of def.
func readSetting(def any, text string) (v any, err error) {
	var want string
	switch def := def.(type) {
	case int:
		want = wholeNumber
		v, err = readWhole(text)
	case float64:
		want = "a number"
		v, err = readNumber(text)
	case bool:
		want = "true or false"
		v, err = strconv.ParseBool(text)
	case []int:
		want = "whole numbers of at most 1048576 with commas between them"
		v, err = readList(text, readWhole)
	case []float64:
		want = "numbers with commas between them"
		v, err = readList(text, readNumber)
	case []string:
		want = "at least one"
		v, err = readTexts(text, len(def) == 0)
	default:
		v = text
	}
	var again *repeated
	if errors.As(err, &again) {
		return nil, again
	}
	if err != nil {
		return nil, fmt.Errorf("want %s", want)
	}
	return v, nil
}

// repeated is a list with a duplicate entry, which would count twice.
type repeated struct{ entry string }

func (r *repeated) Error() string { return fmt.Sprintf("it has %s twice", r.entry) }

// mostWhole bounds integers: they count samples or tokens, which are prepared in memory before a model is asked.
const (
	mostWhole   = 1 << 20
	wholeNumber = "a whole number of at most 1048576"
)

func readWhole(s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if n > mostWhole || n < -mostWhole {
		err = strconv.ErrRange
	}
	return n, err
}

// readNumber rejects values that range comparisons would accept.
func readNumber(s string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if !Finite(x) {
		err = strconv.ErrRange
	}
	return x, err
}

func readList[T comparable](text string, read func(string) (T, error)) ([]T, error) {
	var out []T
	for _, s := range strings.Split(text, ",") {
		v, err := read(s)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, v) {
			return nil, &repeated{strings.TrimSpace(s)}
		}
		out = append(out, v)
	}
	return out, nil
}

// readTexts reads a list of texts, which may be empty if the default is.
func readTexts(text string, empty bool) ([]string, error) {
	switch {
	case text != "":
		return readList(text, func(s string) (string, error) { return s, nil })
	case empty:
		return []string{}, nil
	}
	return nil, strconv.ErrSyntax
}

// setting is the value of a key that the task declares with this type.
func setting[T any](p *Plan, key string) T {
	v, ok := p.Values[key].(T)
	if !ok {
		// Keys and types come from the task's own table.
		panic(fmt.Sprintf("eval: task %s has no setting %q of type %T", p.task.Name, key, v))
	}
	return v
}

// Int is a setting that is a whole number.
func (p *Plan) Int(key string) int { return setting[int](p, key) }

// Float is a setting that is a number.
func (p *Plan) Float(key string) float64 { return setting[float64](p, key) }

// Bool is a setting that is true or false.
func (p *Plan) Bool(key string) bool { return setting[bool](p, key) }

// Text is a setting that is text.
func (p *Plan) Text(key string) string { return setting[string](p, key) }

// Ints is a setting that is a list of whole numbers.
func (p *Plan) Ints(key string) []int { return setting[[]int](p, key) }

// Floats is a setting that is a list of numbers.
func (p *Plan) Floats(key string) []float64 { return setting[[]float64](p, key) }

// Texts is a setting that is a list of texts.
func (p *Plan) Texts(key string) []string { return setting[[]string](p, key) }

// Limited is the number of samples to use out of n.
func (p *Plan) Limited(n int) int {
	if p.Limit > 0 {
		return min(n, p.Limit)
	}
	return n
}

// mostTokens bounds the text that a task draws before anything is asked, because it is held in memory. The largest
// published figure (Figure 7 at 64K) needs less than half of it.
const mostTokens = 1 << 29

// Fits rejects samples with more tokens in total than a task may draw.
func (p *Plan) Fits(samples, tokens int) error {
	if samples > mostTokens/max(tokens, 1) {
		return BadSetting("%d samples of up to %d tokens are more than the %d million tokens that a task may have; "+
			"take fewer, or --limit",
			samples, tokens, mostTokens>>20)
	}
	return nil
}

// Slot is one sample of a grid: the k-th of a cell.
type Slot struct{ Cell, K int }

// Grid lists the samples of a task that asks each questions in every cell of a grid (for example lengths × depths). A
// limit counts the task's samples, not a cell's: cells are filled in turn until it is reached. Samples of a cell are
// consecutive. tokens is the length of the longest sample.
func (p *Plan) Grid(cells, each, tokens int) ([]Slot, error) {
	if err := p.Fits(p.Limited(cells*each), tokens); err != nil {
		return nil, err
	}
	var out []Slot
	for k := range each {
		for c := range cells {
			if p.Limit > 0 && len(out) == p.Limit {
				break
			}
			out = append(out, Slot{c, k})
		}
	}
	slices.SortStableFunc(out, func(a, b Slot) int { return a.Cell - b.Cell })
	return out, nil
}

// Rand is a random stream for one purpose of the task: it depends on the seed and not on other tasks.
func (p *Plan) Rand(purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(p.task.Name + " " + purpose))
	return rand.New(rand.NewPCG(p.Seed, h.Sum64()))
}
