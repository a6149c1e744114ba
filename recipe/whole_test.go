package recipe

import (
	"encoding/json"
	"strings"
	"testing"
)

// A stored recipe counts as whole only if it has every key that recipes always had: without one of them it states
// differences, and what it leaves out keeps the named recipe's value.
func TestWholeRecipesHaveEveryOldKey(t *testing.T) {
	r, _ := Named("6.8b", "diff")
	r, err := r.Complete()
	if err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"", "data.sources", "data.held_out", "data.max_tokens", "data.isolate",
		"train.keep_last", "train.strict_save"} {
		var all map[string]map[string]any
		if err := json.Unmarshal([]byte(`{"data": {}, "train": {}}`), &all); err != nil {
			t.Fatal(err)
		}
		var stored map[string]any
		if err := json.Unmarshal(r.JSON(), &stored); err != nil {
			t.Fatal(err)
		}
		for _, section := range []string{"data", "train"} {
			all[section] = stored[section].(map[string]any)
		}
		for _, later := range []string{"data.order", "data.held_out_by", "train.recompute", missing} {
			if section, key, ok := strings.Cut(later, "."); ok {
				delete(all[section], key)
			}
		}
		text, _ := json.Marshal(stored)
		back := r
		if err := back.Parse(text); err != nil {
			t.Fatal(err)
		}
		got := [3]string{back.Data.Order, back.Data.HeldOutBy, string(back.Train.Recompute)}
		want := [3]string{"random", "pieces", "blocks"}
		if missing == "" {
			want = [3]string{"stream", "documents", "off"}
		}
		if got != want {
			t.Errorf("without %q: %q, want %q", missing, got, want)
		}
	}
}

// One source with a bound on its epochs needs no weight; it is mixed, so a stream or a number of tokens does not fit
// it.
func TestOneBoundedSource(t *testing.T) {
	for set, want := range map[string]string{"": "",
		"data.order=stream": "data.order: a stream takes all sources as one",
		"data.max_tokens=9": "data.max_tokens: would cut", "data.order=random": ""} {
		r, _ := Nano("diff")
		if err := r.SetPair(`data.sources=[{"path": "x", "epochs": 2}]`); err != nil {
			t.Fatal(err)
		}
		if set != "" {
			if err := r.SetPair(set); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Complete(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
	plain, _ := Nano("diff")
	for _, set := range []string{"data.order=stream", "data.max_tokens=9"} {
		if err := plain.SetPair(set); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plain.Complete(); err != nil {
		t.Errorf("sources without weights: %v", err)
	}
	for in, want := range map[string]Source{`C:\me@home\x`: {Path: `C:\me@home\x`}, `a\b@2`: {Path: `a\b`, Weight: 2},
		"@1": {Path: "", Weight: 1}} {
		if got, err := ParseSource(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	long := strings.Repeat("k", 500)
	if err := plain.Set(long, "1"); err == nil || strings.Count(err.Error(), "k") > 100 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// A value that is an object replaces the old one whole: no field of that persists, nothing changes if the new one is
// refused, and text after it is not ignored.
func TestObjectsAreReplaced(t *testing.T) {
	yarn := `{"type":"yarn","factor":4,"original_context":32}`
	for text, want := range map[string]string{
		`{"type":"linear","factor":2}`: `{"type":"linear","factor":2}`, "null": "null", yarn: yarn,
		`{"factor":8,"typo":1}`: "", `{"factor":"x"}`: "", `{"type":"linear","factor":2} {}`: "",
		`{"type":"linear","factor":2}]`: "", `null 1`: "",
	} {
		r, _ := Nano("diff")
		if err := r.Set("model.rope_scaling", yarn); err != nil {
			t.Fatal(err)
		}
		err := r.Set("model.rope_scaling", text)
		refused := want == ""
		if refused {
			want = yarn
		}
		got, _ := json.Marshal(r.Model.RopeScaling)
		if (err != nil) != refused || string(got) != want {
			t.Errorf("%s: %v, reads %s, want %s", text, err, got, want)
		}
	}
}
