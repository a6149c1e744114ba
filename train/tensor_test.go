package train

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/recipe"
)

// ranked is a layout of ranks.
type ranked struct {
	n, tensor int
	shard     bool
}

func (l ranked) String() string {
	s := fmt.Sprintf("dp=%d", l.n/max(l.tensor, 1))
	if l.tensor > 1 {
		s += fmt.Sprintf(",tp=%d", l.tensor)
	}
	if l.shard {
		s += ",zero=1"
	}
	return s
}

// run trains r in dir by this layout; change may alter a rank's options and recipe.
func (l ranked) run(t testing.TB, r recipe.Recipe, dir string,
	change func(rank int, opt *Options, r *recipe.Recipe)) ([]Row, error) {
	t.Helper()
	return runRanks(t, r, dir, l.n, l.shard, func(rank int, opt *Options, r *recipe.Recipe) {
		opt.Tensor = l.tensor
		if change != nil {
			change(rank, opt, r)
		}
	})
}

// The losses of fifty steps do not depend on how ranks split the model, with rows and moments divided too or not.
func TestTensorRanksEqualOne(t *testing.T) {
	steps := 50
	if testing.Short() {
		steps = 8
	}
	for _, a := range layer.Archs() {
		base := []string{"train.batch=4", "train.seq_len=8", fmt.Sprint("train.steps=", steps), "train.save_every=0",
			"train.eval_every=10", "train.eval_batches=3", "model.kv_heads=2"} // two groups: any architecture splits
		want := single(t, nano(t, a.Name, append(base, "train.micro_batch=4")...), t.TempDir())
		for _, l := range []ranked{{2, 2, false}, {4, 2, false}, {4, 2, true}} {
			for _, micro := range []int{4, 1} {
				name := fmt.Sprintf("%s, %v, micro-batch %d", a.Name, l, micro)
				got, err := l.run(t, nano(t, a.Name, append(base, fmt.Sprint("train.micro_batch=", micro))...),
					t.TempDir(), nil)
				if err != nil || len(got) != steps {
					t.Fatalf("%s: %d rows, %v", name, len(got), err)
				}
				sameCurve(t, name, got, want, micro == 4, micro == 4 && l.n == l.tensor)
			}
		}
	}
}

// sameCurve compares losses and norms; the held-out loss too where the micro-batches are the same, and λ where the rows
// of the last one are.
func sameCurve(t *testing.T, name string, got, want []Row, valid, lambda bool) {
	t.Helper()
	worst := 0.0
	for i := range got {
		worst = math.Max(worst, math.Abs(got[i].Loss-want[i].Loss))
		if valid && !math.IsNaN(want[i].Valid) {
			worst = math.Max(worst, math.Abs(got[i].Valid-want[i].Valid))
		}
		if math.IsNaN(got[i].Valid) != math.IsNaN(want[i].Valid) {
			t.Fatalf("%s, step %d: held-out loss %v, one rank's %v", name, i+1, got[i].Valid, want[i].Valid)
		}
		if !(math.Abs(got[i].GradNorm/want[i].GradNorm-1) <= 1e-3) {
			t.Fatalf("%s, step %d: norm %g, one rank's %g", name, i+1, got[i].GradNorm, want[i].GradNorm)
		}
		for k, x := range want[i].Lambda {
			if lambda && !(math.Abs(got[i].Lambda[k]-x) <= 1e-4) {
				t.Fatalf("%s, step %d, layer %d: λ %g, one rank's %g", name, i+1, k, got[i].Lambda[k], x)
			}
		}
	}
	if !(worst <= 1e-5*want[0].Loss) {
		t.Errorf("%s: losses differ by up to %g", name, worst)
	}
}

// A checkpoint of any layout continues with any other (the short form: with two): the next losses are those of a run in
// one piece.
func TestLayoutsResume(t *testing.T) {
	layouts := []ranked{{1, 1, false}, {2, 1, false}, {3, 1, true}, {2, 2, false}, {4, 2, false}, {4, 2, true}}
	base := []string{"train.batch=12", "train.save_every=0", "train.micro_batch=3", "optim.schedule=constant"}
	whole := single(t, nano(t, "diff", append(base, "train.steps=6")...), t.TempDir())
	for f, from := range layouts {
		begun := t.TempDir()
		if _, err := from.run(t, nano(t, "diff", append(base, "train.steps=3")...), begun, nil); err != nil {
			t.Fatal(err)
		}
		for i, to := range layouts {
			if testing.Short() && (f+i)%len(layouts) > 1 {
				continue
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(begun)); err != nil {
				t.Fatal(err)
			}
			rows, err := to.run(t, nano(t, "diff", append(base, "train.steps=6")...), dir, nil)
			if err != nil || len(rows) != 3 || rows[0].Step != 4 {
				t.Fatalf("%v → %v: %d rows, %v", from, to, len(rows), err)
			}
			for i, row := range rows {
				if diff := math.Abs(row.Loss - whole[3+i].Loss); !(diff <= 1e-6*row.Loss) {
					t.Errorf("%v → %v: step %d differs by %g", from, to, row.Step, diff)
				}
			}
		}
	}
}

// Ranks that split a model end alike where a loss is not finite, and refuse a model that cannot be split.
func TestTensorRanksEnd(t *testing.T) {
	r := nano(t, "diff", "train.batch=4", "train.micro_batch=2", "train.steps=9", "optim.clip=0", "optim.warmup=0")
	r.Optim.LR = 1e30
	_, err := ranked{4, 2, true}.run(t, r, t.TempDir(), nil)
	if !errors.Is(err, ErrNotFinite) || strings.Count(err.Error(), ErrNotFinite.Error()) != 4 {
		t.Errorf("not finite: %v", err)
	}
	for _, x := range []struct {
		l    ranked
		want string
	}{{ranked{3, 3, false}, "pairs, whose two maps stay on one rank"},
		{ranked{3, 2, false}, "3 ranks cannot be divided into models of tp=2"}} {
		rows, err := x.l.run(t, nano(t, "diff", "train.batch=4", "train.steps=3"), t.TempDir(), nil)
		if err == nil || !strings.Contains(err.Error(), x.want) || len(rows) > 0 {
			t.Errorf("%v: %d rows, %v; want %q", x.l, len(rows), err, x.want)
		}
	}
}

// Sharing the moments does not show at bf16 either, where a device keeps weights packed from step to step: what other
// ranks have updated must be packed again. The norm is summed in another order.
func TestShardedBF16EqualsData(t *testing.T) {
	r := nano(t, "diff", "train.batch=4", "train.micro_batch=2", "train.steps=12", "train.save_every=0")
	var curves [2][]Row
	for i, shard := range []bool{false, true} {
		var err error
		curves[i], err = ranked{2, 1, shard}.run(t, r, t.TempDir(), func(_ int, opt *Options, _ *recipe.Recipe) {
			d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.BF16})
			t.Cleanup(func() { d.Close() })
			opt.Device = d
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, row := range curves[1] {
		if want := curves[0][i]; !(math.Abs(row.Loss-want.Loss) <= 1e-3) {
			t.Fatalf("step %d: loss %v, with whole moments %v", row.Step, row.Loss, want.Loss)
		}
	}
}
