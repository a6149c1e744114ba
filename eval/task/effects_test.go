package task

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/eval"
)

// others are values of settings that differ from those of briefly and from the defaults.
var others = map[string]string{"needles": "3", "queries": "1", "depths": "0.5", "lengths": "400", "samples": "2",
	"digits": "3", "wording": "public", "length": "40", "pieces": "2", "items": "1", "seeds": "3",
	"same_shots": "true", "max_tokens": "3", "shots": "1", "chains": "1", "hops": "1", "common": "1", "often": "7",
	"keys": "1", "values": "2", "task": "boolq", "metric": "free", "with": "lengths=300",
	"kinds": "drop", "words": "0.5", "passages": "2", "bytes": "60", "prompts": "a,b", "tokens": "5",
	"ways": "knockout@H2", "each": "lambda=2", "bits": "2", "of": "keys", "per": "head", "texts": "1",
	"layer": "1", "head": "2"}

// effectOf are settings that need another value, or another start, than others have.
var effectOf = map[string][2]string{ // task and key: value before, value after
	"maps.bytes": {"320", "280"}, "outliers.tokens": {"96", "48"}, "lowbit.metric": {"", "bits_per_byte"},
	"lowbit.task": {"lm", "hellaswag"}, "lowbit.with": {"", "length=40"}, "lowbit.samples": {"1", "2"},
	"ruler_variables.hops": {"2", "1"}, "icl_order_trec.shots": {"2", "3"}, "noise.bytes": {"40", "60"},
	"noise.kinds": {"typos,irrelevant", "drop"}, "attention.lengths": {"480", "400"},
	"noise.task": {"needle", "needle_hop"}, "maps.layer": {"1", "2"}, "maps.head": {"1", "2"},
	"lm.length": {"24", "50"}, "interventions.length": {"250", "240"}, "interventions.each": {"", "knockout"},
	"interventions.pieces":  {"1", "2"},
	"interventions.needles": {"1", "2"}, "needle_hop.hops": {"0", "1"}, "outliers.length": {"24", "48"},
}

// hears keeps the bounds and stops of what is generated, in addition to all prompts.
type hears struct{ asked }

func (h *hears) GenerateUntil(ctx context.Context, reqs []eval.Generation) ([]string, error) {
	for _, r := range reqs {
		h.note(fmt.Sprint(r.MaxTokens, r.Until))
	}
	return h.asked.GenerateUntil(ctx, reqs)
}

func (h *hears) LoglikelihoodRolling(ctx context.Context, texts []string) ([]eval.Score, error) {
	h.note(strings.Join(texts, "\x00"))
	return h.asked.LoglikelihoodRolling(ctx, texts)
}

// outcomeOf is all that a task asks, or all that it finds in a model; not the settings themselves.
func outcomeOf(t *testing.T, d device.Device, task eval.Task, opt eval.Options) string {
	t.Helper()
	if task.Inside {
		s := subject(t, d, "diff", 500)
		defer s.Close()
		out := ""
		for _, a := range run(t, task, opt, modelOf("m", s, 500))["m"].Answers {
			out += a.ID + shownAnswer(t, a) + "\n"
		}
		return out
	}
	j := prepared(t, &task, opt, 500)
	h := &hears{asked{LM: &knower{}}}
	which := make([]int, len(j.IDs))
	for i := range which {
		which[i] = i
	}
	if _, err := j.Ask(t.Context(), h, which); err != nil {
		t.Fatalf("%s: %v", task.Name, err)
	}
	return strings.Join(j.IDs, "\n") + strings.Join(h.prompts, "\n") + fmt.Sprint(j.Gold)
}

// Every setting of every task, of a group for one, changes what is asked or what is found: none is only recorded.
func TestEverySettingHasAnEffect(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	dir := t.TempDir()
	writeSet(t, dir, "text", fmt.Sprintf(`{"text": %q}`, strings.Repeat("A text of one's own has sentences. ", 400)))
	groups := map[string]bool{}
	for _, task := range All() {
		if groups[task.Group] && task.Group != "ruler" || task.Timed {
			continue
		}
		groups[task.Group] = task.Group != ""
		start := func() eval.Options {
			opt := briefly(&task, 0)
			for _, s := range task.Settings {
				if name := task.Name + "." + s.Key; s.Key == "samples" && opt.Set[name] == "" {
					opt.Set[name] = "1"
				} else if v, ok := effectOf[name]; ok {
					opt.Set[name] = v[0]
				}
			}
			if task.Group == "mc" || task.Group == "glue" || task.Group == "math" || task.Name == "lm" {
				opt.Shots, opt.Limit = 2, 4
			}
			return opt
		}
		before := outcomeOf(t, d, task, start())
		for _, s := range task.Settings {
			opt, name := start(), task.Name+"."+s.Key
			value, ok := others[s.Key]
			if v, own := effectOf[name]; own {
				value, ok = v[1], true
			}
			if s.Key == "text" || s.Key == "haystack" {
				value, ok = filepath.Join(dir, "text.jsonl"), true
			}
			if name == "lm.frequent" || name == "noise.metric" { // these change scores that the stub does not have
				continue
			}
			if !ok {
				t.Errorf("%s: this test knows no other value of it", name)
				continue
			}
			if opt.Set[name] = value; outcomeOf(t, d, task, opt) == before {
				t.Errorf("%s=%s changes nothing", name, value)
			}
		}
	}
}
