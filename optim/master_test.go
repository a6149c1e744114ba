package optim_test

import (
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/internal/half"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/optim"
)

// Masters begin as the weights; after steps the weights are the masters, rounded to bf16 values if the settings say so.
// The vectors of λ have no masters and are never rounded. So with whole and with sharded moments.
func TestMasters(t *testing.T) {
	defer optim.Buckets(1)()
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	for _, round := range []bool{false, true} {
		cfg := optim.Default()
		cfg.RoundBF16 = round
		for _, shard := range []bool{false, true} {
			before, after := newParts(), newParts()
			err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
				memory := optim.Memory(layer.Memory{Train: true, Master: true}, r, shard)
				m := modeltest.New(t, ref.New(), c, memory, 3)
				o := optim.NewParallel(m.Device(), m, cfg, optim.Team{Data: r, World: r}, shard)
				before.add(o)
				if err := r.Barrier(); err != nil {
					return err
				}
				checkMasters(t, m, before, false)
				s := optim.NewStepper(m, o, 1)
				for n := range 2 {
					if _, _, err := s.Step(rows(2, 8), n+1, 1e-3); err != nil {
						return err
					}
				}
				after.add(o)
				if err := r.Barrier(); err != nil {
					return err
				}
				checkMasters(t, m, after, round)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkMasters compares the weights with the exact values that ranks store.
func checkMasters(t *testing.T, m *model.Model, exact *parts, round bool) {
	kept := 0 // values that bf16 does not hold
	for _, p := range m.Params.List {
		w := make([]float32, p.Rows*p.Cols)
		device.ReadFloats(m.Device(), w, p.W)
		for i, x := range exact.x[p.Name][optim.Value] {
			want, short := float32(x), half.BF16ToF32(half.F32ToBF16(float32(x)))
			if want != short {
				kept++
			}
			if round && p.Kind != layer.LambdaKind {
				want = short
			}
			if w[i] != want {
				t.Errorf("rounded %v: weight %d of %s is %g, its master %g", round, i, p.Name, w[i], x)
				break
			}
		}
	}
	if kept < m.Params.Count()/2 {
		t.Errorf("%d of %d values are not of bf16", kept, m.Params.Count())
	}
}
