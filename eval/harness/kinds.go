package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"antiphase/eval"
	"antiphase/eval/task"
)

type askFunc = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error)

// kinds are the output types with their functions to ask.
var kinds map[string]func(s *spec, items []item) askFunc

// kindItem adds the target to a question, by kind.
var kindItem = map[string]func(s *spec, x *item, target any) error{
	"multiple_choice": choiceItem, "loglikelihood": likelihoodItem, "generate_until": textItem,
}

func init() {
	kinds = map[string]func(s *spec, items []item) askFunc{
		"multiple_choice": askChoices, "loglikelihood": askLikelihood, "loglikelihood_rolling": askRolling,
		"generate_until": askText,
	}
}

// choiceItem: the target is the index of the right choice, its text, or several indices.
func choiceItem(s *spec, x *item, target any) error {
	for _, c := range x.choices {
		x.conts = append(x.conts, s.ask.targetDelimiter+c)
	}
	list, several := target.([]any)
	if !several {
		list = []any{target}
	}
	for _, t := range list {
		i, isIndex := t.(int)
		if text, ok := t.(string); ok {
			i, isIndex = slices.Index(x.choices, text), true
		}
		if !isIndex || i < 0 || i >= len(x.choices) {
			return fmt.Errorf("doc_to_target gives %v, which is none of the %d choices", t, len(x.choices))
		}
		x.right = append(x.right, i)
	}
	if len(x.right) == 0 {
		return errors.New("doc_to_target gives no choice")
	}
	x.gold = eval.Continuation{Context: x.contexts[0], Text: x.conts[x.right[0]]}
	return nil
}

func likelihoodItem(_ *spec, x *item, target any) error {
	text, err := answerText(target, x.choices)
	x.conts = []string{text} // without a delimiter, as in the harness
	x.gold = eval.Continuation{Context: x.contexts[0], Text: text}
	return err
}

func textItem(s *spec, x *item, target any) error {
	list, several := target.([]any)
	if !several {
		list = []any{target}
	}
	for _, t := range list {
		text, err := answerText(t, x.choices)
		if i, ok := t.(int); ok && x.choices == nil {
			text, err = fmt.Sprint(i), nil
		}
		if err != nil {
			return err
		}
		x.targets = append(x.targets, text)
	}
	if len(x.targets) == 0 {
		return errors.New("doc_to_target gives no answer")
	}
	x.gold = eval.Continuation{Context: x.contexts[0], Text: s.ask.targetDelimiter + x.targets[0]}
	return nil
}

// context is the text before continuation k.
func (x *item) context(k int) string { return x.contexts[min(k, len(x.contexts)-1)] }

// askScored asks for all continuations in one call, so that shared prefixes are computed once, and turns each
// question's scores into an answer.
func askScored(items []item, answer func(x *item, list []eval.Score, a *eval.Answer) error) askFunc {
	return func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		var reqs []eval.Continuation
		for _, w := range which {
			for k, c := range items[w].conts {
				reqs = append(reqs, eval.Continuation{Context: items[w].context(k), Text: c})
			}
		}
		all, err := lm.Loglikelihood(ctx, reqs)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			n := len(items[w].conts)
			if err := answer(&items[w], all[:n], &out[i]); err != nil {
				return nil, err
			}
			all = all[n:]
		}
		return out, nil
	}
}

func askChoices(_ *spec, items []item) askFunc {
	return askScored(items, func(x *item, list []eval.Score, a *eval.Answer) error {
		said := best(list, func(int) float64 { return 1 })
		norm := best(list, func(k int) float64 { return float64(utf8.RuneCountInString(x.choices[k])) })
		bytes := best(list, func(k int) float64 { return float64(len(x.choices[k])) })
		a.Values = map[string]float64{"acc": hit(x, said), "acc_norm": hit(x, norm), "acc_bytes": hit(x, bytes),
			"exact_match": greedy(x, list)}
		a.Doc = map[string]any{"contexts": x.contexts, "continuations": x.conts, "right": x.right, "scores": list}
		return a.SetDetail(eval.Decision{Gold: x.right[0], Said: said})
	})
}

// best is the choice with the highest log-likelihood per unit; the first of equals.
func best(list []eval.Score, per func(k int) float64) int {
	at := 0
	for k := range list {
		if list[k].LogProb/per(k) > list[at].LogProb/per(at) {
			at = k
		}
	}
	return at
}

func hit(x *item, k int) float64 { return truth(slices.Contains(x.right, k)) }

func greedy(x *item, list []eval.Score) float64 {
	return truth(slices.ContainsFunc(x.right, func(k int) bool { return list[k].Greedy }))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func askLikelihood(_ *spec, items []item) askFunc {
	return askScored(items, func(x *item, list []eval.Score, a *eval.Answer) error {
		a.Values = map[string]float64{"acc": truth(list[0].Greedy), "nll": -list[0].LogProb}
		a.Doc = map[string]any{"context": x.contexts[0], "continuation": x.conts[0], "score": list[0]}
		return nil
	})
}

func askRolling(s *spec, items []item) askFunc {
	return func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		texts := make([]string, len(which))
		for i, w := range which {
			texts[i] = items[w].conts[0]
		}
		list, err := lm.LoglikelihoodRolling(ctx, texts)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			nWords, nBytes := task.Words(texts[i]), len(texts[i])
			if s.results != nil {
				nWords, nBytes = s.results.words(items[w].doc), s.results.bytes(items[w].doc)
			}
			out[i].Put("nll_per_word", -list[i].LogProb, float64(nWords))
			out[i].Put("nll_per_byte", -list[i].LogProb, float64(nBytes))
			out[i].Put("bits_per_byte", -list[i].LogProb/math.Ln2, float64(nBytes))
			out[i].Doc = map[string]any{"text": texts[i], "score": list[i]}
		}
		return out, nil
	}
}

func askText(s *spec, items []item) askFunc {
	return func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		reqs := make([]eval.Generation, len(which))
		for i, w := range which {
			reqs[i] = eval.Generation{Prompt: items[w].contexts[0], Until: s.until, MaxTokens: s.maxTokens}
		}
		texts, err := lm.GenerateUntil(ctx, reqs)
		if err != nil {
			return nil, err
		}
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			out[i].Values = map[string]float64{}
			filtered := map[string]string{}
			for _, f := range s.filters {
				if filtered[f.name], err = f.apply(texts[i]); err != nil {
					return nil, err
				}
			}
			for _, m := range s.metrics {
				if out[i].Values[m.key()], err = m.match(filtered[m.filter], items[w].targets); err != nil {
					return nil, err
				}
			}
			out[i].Doc = map[string]any{"prompt": items[w].contexts[0], "text": texts[i], "filtered": filtered,
				"wanted": items[w].targets}
		}
		return out, nil
	}
}
