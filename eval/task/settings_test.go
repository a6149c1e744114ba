package task

import (
	"fmt"
	"strings"
	"testing"

	"antiphase/eval"
)

// freeTexts are settings that may be any text: names of files, and prompts.
var freeTexts = map[string]bool{"text": true, "haystack": true, "prompts": true}

// checked is what Check says about one setting of a task.
func checked(task *eval.Task, key, text string) error {
	opt := eval.Options{Shots: -1, Set: map[string]string{task.Name + "." + key: text}}
	return opt.Check(task, 1024)
}

// Every setting of every task refuses a value of the right type that makes no sense before any text is read, and
// accepts its own default. A new setting without a rule fails here.
func TestEverySettingHasARule(t *testing.T) {
	for _, task := range All() {
		for _, s := range task.Settings {
			bad := "-1"
			switch s.Default.(type) {
			case bool:
				continue
			case string, []string:
				bad = "no such word"
			}
			err := checked(&task, s.Key, bad)
			if freeTexts[s.Key] {
				if err != nil {
					t.Errorf("%s.%s refuses a text: %v", task.Name, s.Key, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), s.Key) {
				t.Errorf("%s.%s=%s: %v", task.Name, s.Key, bad, err)
			}
			if err := checked(&task, s.Key, textOf(s.Default)); err != nil {
				t.Errorf("the default of %s.%s is refused: %v", task.Name, s.Key, err)
			}
		}
	}
}

// textOf is a value as a user types it.
func textOf(v any) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", ",")
}

// What Check refuses, with what it says.
func TestSettingsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"needle needles=0":                      "needles is 0, must be 1 to",
		"needle queries=0":                      "queries is 0, must be 1 to",
		"needle queries=5":                      "queries is 5, must be at most needles, 4",
		"needle needles=1000":                   "needles is 1000, must be 1 to",
		"needle needles=20 digits=1":            "digits is 1, must be enough for 20 different numbers",
		"needle lengths=1025":                   "lengths has 1025, the context is 1024",
		"needle lengths=0,1024":                 "lengths has 1024 twice",
		"needle depths=0.5,1.5":                 "depths has 1.5, must be 0 to 1",
		"needle wording=french":                 `wording is "french", must be own or public`,
		"attention samples=0":                   "samples is 0, must be 1 or more",
		"lm pieces=0":                           "pieces is 0, must be 1 or more",
		"lm frequent=-0.1":                      "frequent is -0.1, must be 0 or more",
		"outliers length=1025":                  "length is 1025, must be 2 to the context, 1024",
		"outliers length=1":                     "length is 1, must be 0 or 2 or more",
		"outliers tokens=100":                   "tokens is 100, must be at least those of one sequence, 1024",
		"gradients length=1025":                 "length is 1025, must be 2 to the context",
		"context_rms samples=0":                 "samples is 0",
		"lowbit of=logit":                       `of has "logit", must be logits, keys, values, cache or both`,
		"lowbit per=colunm":                     `per has "colunm", must be usual, tensor, head or row`,
		"lowbit bits=8,0":                       "bits has 0, must be 2 to 16",
		"lowbit of=":                            "of=: want at least one",
		"lowbit task=outliers":                  "that asks questions",
		"lowbit metric=zeal":                    `metric is "zeal", which hellaswag does not have`,
		"lowbit task=needle with=needles=0":     "needles is 0, must be 1 to",
		"lowbit task=needle with=lengths=2000":  "lengths has 2000, the context is 1024",
		"lowbit task=needle with=nedles=2":      `setting "needle.nedles" is unknown`,
		"noise task=lm":                         "want one with right answers",
		"noise words=0.2,0.1":                   "must be positive and growing",
		"interventions ways=lambda=x":           `ways has "lambda=x"`,
		"interventions each=knockout@L1":        "leave the place out",
		"needle_hop hops=3":                     "hops has 3, must be 0 to 2",
		"ruler_values keys=10 values=90":        "keys × values is 900, must be at most",
		"ruler_values keys=9 values=9 digits=1": "digits is 1, must be enough for 81 different numbers",
		"throughput lengths=4096":               "lengths has 4096",
		"icl_order_trec seeds=1":                "seeds is 1, must be 2 or more",
		"samples tokens=0":                      "tokens is 0",
	} {
		words := strings.Fields(line)
		opt := eval.Options{Shots: -1, Set: map[string]string{}}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			opt.Set[words[0]+"."+key] = value
		}
		if err := opt.Check(lookup(t, words[0]), 1024); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
