package eval

import (
	"slices"
	"strings"
	"testing"
)

func TestRemarks(t *testing.T) {
	e := &Evaluation{Models: []Judged{{Name: "m", Results: []Result{
		{Task: "piqa", N: 9, Shots: 5, Config: map[string]any{"prompts_cut": 3}},
		{Task: "elife", N: 4, Config: map[string]any{"sources_cut": 2.0}}, // as JSON gives it back
		{Task: "gsm8k", N: 4, Shots: 5, Config: map[string]any{"examples_fit": 1.25}},
		{Task: "svamp", N: 4, Shots: 5, Config: map[string]any{"examples_fit": 5.0, "prompts_cut": 0}},
	}}}}
	want := []string{
		"piqa: 3 of 9 prompts are longer than the context and lost their beginning",
		"elife: 2 of 4 sources are longer than the context and lost their middle",
		"gsm8k: the context has room for 1.2 of 5 examples, on average",
	}
	if got := e.remarks(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.HasSuffix(e.Table(false), want[2]+"\n") {
		t.Errorf("the table lacks them:\n%s", e.Table(false))
	}
	for source, want := range map[string]string{"mc/piqa_val": "piqa", standIn: "piqa (stand-in)"} {
		if got := (&Result{Task: "piqa", Config: map[string]any{"source": source}}).label(); got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
	if all, some := paperGroup("mc", 7, 0), paperGroup("mc", 3, 0); all[0] != "0.554" || some[0] != "" {
		t.Errorf("the paper's mean beside one of seven tasks %q, of three %q", all, some)
	}
	if got := (&Evaluation{}).remarks(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}
