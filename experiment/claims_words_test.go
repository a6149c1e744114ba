package experiment

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// A claim's direction, sides, unit and border are those of its sentence; its least effect is the paper's Table 6.
func TestClaimsSayWhatTheyTest(t *testing.T) {
	more := regexp.MustCompile(`\b(more|higher|larger|as often as|% or more)\b`)
	less := regexp.MustCompile(`\b(lower|smaller|less|fewer|better)\b`)
	for _, c := range claims {
		if c.measure == "" {
			if c.why == "" || c.command == "" {
				t.Errorf("%s: neither measured nor said why not", c.text)
			}
			continue
		}
		if up, down := more.MatchString(c.text), less.MatchString(c.text); up == down || c.above != up {
			t.Errorf("%s: above is %v", c.text, c.above)
		}
		arch := map[bool]string{true: v2, false: v1}[strings.HasPrefix(c.text, "DIFF V2")]
		switch {
		case strings.HasPrefix(c.text, "DIFF without the norm"):
			arch = noNorm
		case strings.HasPrefix(c.text, "DIFF with λ_init"):
			arch = flatter
		case strings.HasPrefix(c.text, "DIFF with both"):
			arch = flatFree
		}
		than := plain
		switch {
		case strings.HasSuffix(c.text, "than DIFF V2's"):
			than = v2
		case strings.HasSuffix(c.text, "than DIFF"):
			than = v1
		}
		if c.arch != arch || c.than != than {
			t.Errorf("%s: %s against %s, want %s against %s", c.text, c.arch, c.than, arch, than)
		}
		share := strings.HasPrefix(c.measure, "needle.") || strings.HasPrefix(c.measure, "attention.")
		nats := strings.HasPrefix(c.measure, "lm.") || strings.HasPrefix(c.measure, "lowbit.")
		if c.percent != share || (c.unit == "nats") != nats {
			t.Errorf("%s: percent %v, unit %q", c.text, c.percent, c.unit)
		}
		border := 0.0
		switch {
		case strings.Contains(c.text, "to 5 points"):
			border = -0.05
		case strings.Contains(c.text, "88 %"):
			border = 0.88
		case strings.Contains(c.text, "95 %"):
			border = 0.95
		case c.ratio:
			border = 1
		}
		if c.border != border {
			t.Errorf("%s: the border is %g, want %g", c.text, c.border, border)
		}
	}
	for i, want := range map[int]float64{0: 3.087 - 3.062, 1: 0.898 - 0.880, 2: 3.272 - 3.247, len(paperClaims) - 1: 3.122 - 3.062} {
		if got := paperClaims[i].least; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: an effect of %g, the paper's is %g", paperClaims[i].text, got, want)
		}
	}
}

// Measures of claims and phrases are ones that tasks or runs have, and better in the direction that the sentence takes.
func TestMeasuresExist(t *testing.T) {
	better := map[string]eval.Better{trainSpeed: eval.Higher, "train.spikes": eval.Lower, "train.grad_norm_late": eval.Lower}
	for _, x := range task.All() {
		for _, m := range x.Measures {
			better[x.Name+"."+m.Name] = m.Better
		}
	}
	seen := 0
	check := func(measure string) eval.Better {
		name, _, _ := strings.Cut(measure, " ")
		b, ok := better[name]
		if !ok && name != "tokens" && !strings.HasPrefix(name, "lowbit.kl") {
			t.Errorf("nothing measures %s", measure)
		}
		seen++
		return b
	}
	for _, c := range claims {
		if c.measure != "" {
			check(c.measure)
		}
	}
	for _, p := range phrases {
		b := check(p.measure)
		if lower := regexp.MustCompile(`lower|less|smaller`).MatchString(p.says); b == eval.Higher && lower {
			t.Errorf("%s: %q, and higher is better", p.measure, p.says)
		}
		if p.share != strings.HasSuffix(p.label, ", %") {
			t.Errorf("%s: %q is a share: %v", p.measure, p.label, p.share)
		}
	}
	if seen < 25 {
		t.Errorf("%d measures", seen)
	}
}
