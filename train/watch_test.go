package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/metrics"
)

// quietRow is a step about which nothing is odd: noise of a few percent around a falling loss.
func quietRow(g *rand.Rand, step int) Row {
	return Row{Step: step, Loss: 4 - 0.002*float64(step) + 0.05*g.NormFloat64(),
		GradNorm: 0.8 * math.Exp(0.2*g.NormFloat64()), LambdaMin: 0.2, LambdaMax: 0.7}
}

// Each kind of oddity sets its own mark, is counted at each step, and is said once each time it begins.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Row)
		want   metrics.Warning
		say    string
	}{
		{"nothing", func(*Row) {}, 0, ""},
		{"λ below", func(r *Row) { r.LambdaMin = -0.48 }, metrics.LambdaRange, "λ from -0.48"},
		{"λ above", func(r *Row) { r.LambdaMax = 1.6 }, metrics.LambdaRange, "to 1.60"},
		{"no λ", func(r *Row) { r.LambdaMin, r.LambdaMax = math.NaN(), math.NaN() }, 0, ""},
		{"gradient", func(r *Row) { r.GradNorm = 11 }, metrics.GradientSpike, "gradient norm 11"},
		{"large gradient", func(r *Row) { r.GradNorm = 6 }, 0, ""},
		{"loss", func(r *Row) { r.Loss = 5 }, metrics.LossSpike, "loss 5.0000"},
		{"all", func(r *Row) { r.Loss, r.GradNorm, r.LambdaMin = 9, 99, -1 },
			metrics.LossSpike | metrics.GradientSpike | metrics.LambdaRange, "loss 9"},
	} {
		var w watch
		g := rand.New(rand.NewPCG(1, 2))
		var said []string
		say := func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }
		for step := 1; step <= 1000; step++ {
			r := quietRow(g, step)
			odd := step >= 500 && step < 503 || step >= 700 && step < 702
			if odd {
				c.change(&r)
			}
			w.judge(&r, say)
			if want := c.want; odd && r.Warn != want || !odd && r.Warn != 0 {
				t.Errorf("%s: step %d has %q", c.name, step, r.Warn.Names())
			}
		}
		lines := len(c.want.Names())
		steps := (3 + 2) * min(lines, 1)
		if len(said) != 2*lines || w.steps != steps || lines > 0 && !strings.Contains(strings.Join(said, "\n"), c.say) {
			t.Errorf("%s: %d steps counted, said %q", c.name, w.steps, said)
		}
	}
}

// A warning says the step, its value and the median that it was compared with.
func TestWarningsSayTheMedian(t *testing.T) {
	var w watch
	var said []string
	say := func(f string, args ...any) { said = append(said, fmt.Sprintf(f, args...)) }
	for i := range 25 {
		w.judge(&Row{Step: i + 1, Loss: 2 + float64(i%5-2)/100, GradNorm: 0.5 + float64(i%5-2)/10}, say)
	}
	w.judge(&Row{Step: 26, Loss: 3, GradNorm: 6.25, LambdaMin: -0.25, LambdaMax: 1.75}, say)
	want := []string{"warning: step 26: λ from -0.25 to 1.75, outside [0, 1.5]",
		"warning: step 26: gradient norm 6.25, more than 10 times its running median of 0.5",
		"warning: step 26: loss 3.0000, its running median is 2.0000"}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// A run whose learning rate explodes for a moment warns, counts it in every row from there, and still knows after a
// resume.
func TestWarningsAreCounted(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.steps=40", "optim.lr=0.3", "optim.clip=0", "optim.warmup=30", "train.batch=1",
		"train.save_every=0")
	opt := options(t, dir)
	lines := 0
	opt.Say = func(f string, _ ...any) {
		if strings.HasPrefix(f, "warning: step") {
			lines++
		}
	}
	stopAt(t, r, opt, 35)
	res := mustRun(t, r, opt)
	rows, err := metrics.Read(filepath.Join(dir, metrics.FileName), nil)
	if err != nil || len(rows) != 40 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	count := 0
	for _, row := range rows {
		if row.Warn != 0 {
			count++
		}
		if row.Warnings != count {
			t.Errorf("step %d: %d counted, want %d", row.Step, row.Warnings, count)
		}
	}
	if count == 0 || lines == 0 || lines > count || res.Warnings != count {
		t.Errorf("%d steps with a warning, %d lines, result says %d", count, lines, res.Warnings)
	}
}
