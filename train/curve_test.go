package train

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda/cudatest"
	"antiphase/layer"
)

// curve trains 200 small steps and gives their rows.
func curve(t *testing.T, d device.Device, arch string, set ...string) (rows []Row) {
	t.Helper()
	r := nano(t, arch, append([]string{"train.steps=200", "train.batch=8", "train.seq_len=32", "train.save_every=0",
		"train.eval_every=0"}, set...)...)
	mustRun(t, r, Options{Dir: t.TempDir(), Device: d, Report: func(row Row) { rows = append(rows, row) }})
	return rows
}

// apart is the mean distance of two curves.
func apart(a, b []Row) (mean float64) {
	for i := range a {
		mean += math.Abs(a[i].LossEMA-b[i].LossEMA) / float64(len(a))
	}
	return mean
}

// TestCurve: in bf16 on a GPU every architecture learns along the curve of fp32 on the CPU, far closer than another
// seed's lies.
func TestCurve(t *testing.T) {
	gpu, host := cudatest.Open(t), cpu.New(cpu.Options{})
	defer host.Close()
	for _, a := range layer.Archs() {
		want, got := curve(t, host, a.Name), curve(t, gpu, a.Name)
		off, noise := apart(got, want), apart(curve(t, host, a.Name, "train.seed=2"), want)
		t.Logf("%s: loss %.4f → %.4f on the CPU, %.4f → %.4f on the GPU; %.4f apart, another seed %.4f",
			a.Name, want[0].Loss, want[199].LossEMA, got[0].Loss, got[199].LossEMA, off, noise)
		if !(off <= noise/4) || !(math.Abs(got[0].Loss-want[0].Loss) <= 1e-2) {
			t.Errorf(
				"%s: the curves are %.4f apart, a quarter of another seed's %.4f allowed; first losses %.4f and %.4f",
				a.Name, off, noise, got[0].Loss, want[0].Loss)
		}
	}
}

// TestResumeOnGPU: a run on a GPU, stopped and resumed, ends with the bytes of an unbroken one: graphs do not outlive
// their run.
func TestResumeOnGPU(t *testing.T) {
	gpu := cudatest.Open(t)
	for _, a := range layer.Archs() {
		r := nano(t, a.Name, "train.steps=12", "train.batch=4", "train.micro_batch=2", "train.eval_every=4",
			"train.save_every=0")
		whole, broken := Options{Dir: t.TempDir(), Device: gpu}, Options{Dir: t.TempDir(), Device: gpu}
		mustRun(t, r, whole)
		stopAt(t, r, broken, 5)
		mustRun(t, r, broken)
		sameFiles(t, files(t, broken.Dir+"/checkpoints/step-00000012"),
			files(t, whole.Dir+"/checkpoints/step-00000012"))
	}
}
