package cpu_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
)

// BenchmarkInfer runs a 160M model on a prompt of 512 tokens, and on one more token behind it, in every precision:
// tokens per second of the median and of the fastest step.
func BenchmarkInfer(b *testing.B) {
	r, err := recipe.M160("diff")
	if err != nil {
		b.Fatal(err)
	}
	const prompt, page = 512, 64
	for _, p := range []cpu.Precision{cpu.FP32, cpu.BF16, cpu.Int8} {
		dev := cpu.New(cpu.Options{Precision: p})
		m, err := model.New(dev, r.Model, layer.Memory{})
		if err != nil {
			b.Fatal(err)
		}
		m.Init(1)
		c := m.NewCache(2*prompt/page, page, 1, 2*prompt/page)
		for i := range 2 * prompt / page {
			c.Assign(0, i, int32(i))
		}
		logits := make([]float32, r.Model.Vocab)
		step := func(n, pos int) {
			rows := model.Rows{IDs: make([]int32, n), Slots: make([]int32, n), Pos: make([]int32, n),
				Want: []int32{int32(n - 1)}}
			for i := range n {
				rows.IDs[i], rows.Pos[i] = int32(i%100), int32(pos+i)
			}
			if err := c.Step(rows, logits); err != nil {
				b.Fatal(err)
			}
		}
		for _, rows := range []int{prompt, 1} {
			b.Run(fmt.Sprintf("%v/%d", p, rows), func(b *testing.B) {
				var took []float64
				for b.Loop() {
					begin := time.Now()
					step(rows, (prompt-rows+1)%prompt)
					took = append(took, time.Since(begin).Seconds())
				}
				slices.Sort(took)
				b.ReportMetric(float64(rows)/took[len(took)/2], "tok/s")
				b.ReportMetric(float64(rows)/took[0], "best-tok/s")
			})
		}
		m.Free()
		dev.Close()
	}
}
