package experiment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/recipe"
)

// A claim's direction, sides, unit and border are those of its sentence; its least effect is the paper's Table 6.
func TestClaimsSayWhatTheyTest(t *testing.T) {
	more := regexp.MustCompile(`\b(more|higher|larger|as often as|% or more|not help)\b`)
	less := regexp.MustCompile(`\b(lower|smaller|less|fewer|better|nearer to zero)\b`)
	for _, c := range claims {
		if c.measure == "" {
			if c.why == "" || c.command == "" {
				t.Errorf("%s: neither measured nor said why not", c.text)
			}
			continue
		}
		if up, down := more.MatchString(c.text), less.MatchString(c.text); up == down && c.within == 0 ||
			c.above != up {
			t.Errorf("%s: above is %v", c.text, c.above)
		}
		arch, than := sidesOf(c.text)
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
		case strings.Contains(c.text, "within 5 points"):
			border = -0.05
		case strings.Contains(c.text, "within 0.01 nats"):
			border = -0.01
		case strings.Contains(c.text, "88 %"):
			border = 0.88
		case strings.Contains(c.text, "95 %"):
			border = 0.95
		case c.ratio && !strings.Contains(c.text, "within a factor of 2"):
			border = 1
		}
		if (c.within == 2) != strings.Contains(c.text, "within a factor of 2") || c.within > 0 && !c.ratio {
			t.Errorf("%s: within %g", c.text, c.within)
		}
		if c.border != border {
			t.Errorf("%s: the border is %g, want %g", c.text, c.border, border)
		}
	}
	for i, want := range map[int]float64{0: 3.087 - 3.062, 1: 0.898 - 0.880, 2: 3.272 - 3.247} {
		if got := paperClaims[i].least; !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%s: an effect of %g, the paper's is %g", paperClaims[i].text, got, want)
		}
	}
	published := map[string]float64{noNorm: 3.122 - 3.062, constant8: 3.065 - 3.062, constant5: 3.066 - 3.062}
	for _, c := range paperClaims {
		if want := published[c.arch]; want > 0 && !(math.Abs(c.least-want) <= 1e-9) {
			t.Errorf("%s: an effect of %g, the paper's is %g", c.text, c.least, want)
		}
	}
}

// A claim of the paper that rows measure has the published figure beside its source, and only losses have one that
// decides. The figures are those of the paper's tables: Table 3 has depths of 0 to 100 %.
func TestPublishedFigures(t *testing.T) {
	average := func(x ...float64) string {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		return fmt.Sprintf("%.0f", sum/float64(len(x)))
	}
	want := map[string]string{
		"lm.loss diff": "−0.025 nats", "lm.ar_hit diff": "−0.018 nats", "lm.others diff": "−0.025 nats",
		"lm.loss diff-nonorm": "+0.060 nats", "lm.loss diff-l08": "+0.003 nats", "lm.loss diff-l05": "+0.004 nats",
		"attention.answer N=4 R=1 diff": average(27, 30, 31, 32, 40) + " against " + average(3, 3, 3, 7, 9) + " %",
		"attention.noise N=4 R=1 diff":  average(1, 2, 2, 2, 1) + " against " + average(51, 54, 52, 49, 49) + " %",
		"lowbit.kl logits@4 diff":       fmt.Sprintf("HellaSwag −%.1f against −%.1f points", 66.2-58.8, 63.4-33.9),
		"lm.loss transformer-wide":      fmt.Sprintf("%+.3f nats", 3.088-3.087),
		"lm.loss transformer-wide-norm": fmt.Sprintf("−%.3f nats", 3.088-3.086),
	}
	for i := range paperClaims {
		c := &paperClaims[i]
		source, figure, ok := strings.Cut(c.from(), ": ")
		if source != c.source || ok == (c.source == "paper, App. G") {
			t.Errorf("%s: %q", c.text, c.from())
		}
		if w := want[c.measure+" "+c.arch]; w != "" && figure != w {
			t.Errorf("%s: %q, want %q", c.text, figure, w)
		}
	}
	if v := v2Claims[0].from(); v != "V2: −0.020 nats" {
		t.Errorf("V2's loss: %q", v)
	}
	for _, c := range claims {
		if c.least > 0 && (c.unit != "nats" || !strings.HasPrefix(c.measure, "lm.") || c.published != "") {
			t.Errorf("%s: a published size decides", c.text)
		}
	}
}

// sidesOf are the sides that a claim's sentence speaks about. The first beginning that fits decides.
func sidesOf(text string) (arch, than string) {
	arch, than = v1, plain
	for _, x := range []struct{ begins, arch, than string }{
		{"DIFF without the norm", noNorm, plain}, {"DIFF with λ_init = 0.2", flatter, plain},
		{"DIFF with λ_init = 0.8", constant8, plain},
		{"DIFF with λ_init = 0.5", constant5, plain}, {"DIFF with both", flatFree, plain},
		{"Half the heads of twice the width", wide, plain},
		{"A norm over these heads", wideNorm, wide}, {"DIFF V2 with pairs across", across, grouped},
		{"DIFF V2 without λ", noLambda, grouped},
		{"DIFF V2 with λ without its sigmoid", linearLambda, grouped},
		{"A Transformer with 1.5 times the heads", moreHeads, grouped},
		{"Attention outputs of DIFF V2", v2, plain}, {"DIFF V2", v2, plain},
	} {
		if strings.HasPrefix(text, x.begins) {
			arch, than = x.arch, x.than
			break
		}
	}
	switch {
	case strings.HasSuffix(text, "than with pairs across groups"):
		than = across
	case than == grouped:
	case strings.HasSuffix(text, "than DIFF V2's"):
		than = v2
	case strings.HasSuffix(text, "than DIFF"):
		than = v1
	}
	return arch, than
}

// Every variant of the ablations' command is the published one: its model is what the ablation verb trains.
func TestAblationsCommand(t *testing.T) {
	c := cells[place(ablations)]
	base := map[string]string{wide: "base-wide", wideNorm: "base-wide-norm", noNorm: "diff-no-norm",
		constant8: "diff-lambda-0.8", constant5: "diff-lambda-0.5", grouped: "v2", moreHeads: "v2-base-1.5h",
		noLambda: "v2-no-lambda", linearLambda: "v2-linear-lambda", across: "v2-across"}
	seen := 0
	for _, m := range regexp.MustCompile(`--variant "([^"]+)"`).FindAllStringSubmatch(c.command, -1) {
		name, arch, set, err := Variant(m[1]).parts()
		if err != nil {
			t.Fatal(err)
		}
		got, err := recipe.Named("mini", arch)
		if err != nil {
			t.Fatal(err)
		}
		want := got.Model
		for _, s := range set {
			if err := got.SetPair(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, of := range []string{v1, v2} {
			list, err := eval.Ablations(of)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list {
				if a.Name == base[name] {
					a.Change(&want)
					seen++
				}
			}
		}
		if got.Model != want {
			t.Errorf("%s: %+v, want %+v", name, got.Model, want)
		}
		if !slices.Contains(c.sides, name) {
			t.Errorf("%s is no side of the plan", name)
		}
	}
	if seen != len(base) || len(c.sides) != 3+seen {
		t.Errorf("%d of %d variants, %d sides", seen, len(base), len(c.sides))
	}
}

// Measures of claims and phrases are ones that tasks or runs have, and better in the direction that the sentence takes.
func TestMeasuresExist(t *testing.T) {
	better := map[string]eval.Better{trainSpeed: eval.Higher, "train.spikes": eval.Lower,
		"train.grad_norm_late": eval.Lower}
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
