package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"antiphase/infer"
)

// Choice asks for one of the options as the continuation of a prompt.
type Choice struct {
	Prompt  string
	Options []string // with the leading space of running text
}

// Chooser is an LM that can be constrained to a list of options: at each token it takes the most likely one that some
// option allows, until one option is left (Ratner et al., 2023, with each option cut to its shortest unique prefix).
type Chooser interface {
	Choose(ctx context.Context, reqs []Choice) ([]int, error)
}

// Choose asks for options: constrained if the model can, otherwise by free text, which counts as the longest option it
// begins with (−1 if none).
func Choose(ctx context.Context, lm LM, reqs []Choice) ([]int, error) {
	if c, ok := lm.(Chooser); ok {
		return c.Choose(ctx, reqs)
	}
	gen := make([]Generation, len(reqs))
	for i, r := range reqs {
		longest := 0
		for _, o := range r.Options {
			longest = max(longest, len(o))
		}
		gen[i] = Generation{Prompt: r.Prompt, Until: []string{"\n"}, MaxTokens: longest + 1}
	}
	texts, err := lm.GenerateUntil(ctx, gen)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(reqs))
	for i, r := range reqs {
		out[i] = BeginsWith(texts[i], r.Options)
	}
	return out, nil
}

// BeginsWith is the longest option that text begins with as a whole word, ignoring spaces, case and a full stop.
func BeginsWith(text string, options []string) int {
	text = strings.ToLower(strings.TrimSpace(text))
	best, length := -1, 0
	for i, o := range options {
		o = strings.ToLower(strings.Trim(o, " \t\n."))
		rest, ok := strings.CutPrefix(text, o)
		next, _ := utf8.DecodeRuneInString(rest)
		if ok && len(o) > length && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
			best, length = i, len(o)
		}
	}
	return best
}

// trie holds options as token ids.
type trie struct {
	next   map[int32]*trie
	option int // the first option here or below
	leaves int // options here and below
	end    int // the option that ends here; −1 if none
}

func newTrie() *trie { return &trie{next: map[int32]*trie{}, end: -1} }

// add inserts option i under ids; of two with the same ids the first is kept.
func (t *trie) add(ids []int32, i int) {
	if t.has(ids) {
		return
	}
	for {
		if t.leaves == 0 {
			t.option = i
		}
		t.leaves++
		if len(ids) == 0 {
			t.end = i
			return
		}
		n := t.next[ids[0]]
		if n == nil {
			n = newTrie()
			t.next[ids[0]] = n
		}
		t, ids = n, ids[1:]
	}
}

func (t *trie) has(ids []int32) bool {
	for _, id := range ids {
		if t = t.next[id]; t == nil {
			return false
		}
	}
	return t.end >= 0
}

// step is the most likely token that some option allows; ties go to the lowest id. If an option is a prefix of a longer
// one the longer one is taken, because what would follow the shorter is unknown.
func (t *trie) step(logits []float32) (int32, *trie) {
	best := int32(-1)
	for id := range t.next {
		if best < 0 || logits[id] > logits[best] || logits[id] == logits[best] && id < best {
			best = id
		}
	}
	return best, t.next[best]
}

// Choose implements Chooser. Common prefixes of prompts are computed once.
func (s *Subject) Choose(ctx context.Context, reqs []Choice) ([]int, error) {
	walks, at := make([]infer.Walk, len(reqs)), make([]*trie, len(reqs))
	for i, r := range reqs {
		if len(r.Options) == 0 {
			return nil, fmt.Errorf("eval: request %d has no options to choose from", i)
		}
		w, root, err := s.options(r)
		if err != nil {
			return nil, fmt.Errorf("eval: request %d: %w", i, err)
		}
		walks[i], at[i] = w, root
	}
	err := s.walk(ctx, walks, func(i, _ int, logits []float32) (int32, bool) {
		if at[i].leaves == 1 {
			return 0, false
		}
		id, next := at[i].step(logits)
		at[i] = next
		return id, next.leaves > 1
	})
	out := make([]int, len(reqs))
	for i, t := range at {
		out[i] = t.option
	}
	return out, err
}

// encoded returns the ids of a prompt with each option, and the number of ids of the prompt alone.
func (s *Subject) encoded(r Choice) (list [][]int32, prompt int, err error) {
	if s.Template != nil {
		return s.answers(r)
	}
	// The last line and an option are encoded together. The text before is encoded once, because words do not span
	// lines; if a tokenizer's do, or if an option may begin the line's first word, the whole is encoded for every
	// option.
	whole := s.Encode(r.Prompt)
	line := r.Prompt[strings.LastIndexByte(r.Prompt, '\n')+1:]
	tail := s.Tokenizer.EncodeOrdinary(nil, line)
	head := max(0, len(whole)-len(tail))
	alone := strings.TrimSpace(line) != "" && slices.Equal(whole[head:], tail)
	list = make([][]int32, len(r.Options))
	for i, o := range r.Options {
		if alone {
			list[i] = s.Tokenizer.EncodeOrdinary(slices.Clone(whole[:head]), line+o)
		} else {
			list[i] = s.Encode(r.Prompt + o)
		}
	}
	return list, len(whole), nil
}

// options encodes a request: the part of the prompt that is the same before every option, and the options after it.
func (s *Subject) options(r Choice) (infer.Walk, *trie, error) {
	list, prompt, err := s.encoded(r)
	if err != nil {
		return infer.Walk{}, nil, err
	}
	depth := 0
	for _, ids := range list {
		depth = max(depth, len(ids))
		prompt = min(prompt, commonPrefix(ids, list[0]))
	}
	ids := slices.Clone(list[0][:prompt])
	if prompt == 0 {
		return infer.Walk{}, nil, fmt.Errorf("the options have no token before them")
	}
	root := newTrie()
	for i, o := range list {
		root.add(o[prompt:], i)
	}
	grow := depth - prompt
	if cut := prompt + grow - s.Model.Config.Context; cut > 0 {
		if cut >= prompt {
			return infer.Walk{}, nil, fmt.Errorf("an option has %d tokens, the model's context is %d", grow,
				s.Model.Config.Context)
		}
		ids = ids[cut:]
	}
	return infer.Walk{IDs: ids, From: len(ids), Grow: max(grow, 1)}, root, nil
}

// commonPrefix is the length of the longest common prefix.
func commonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
