// Package devicetest checks every device against the contract of device.Device, op by op, with ref as the oracle.
//
// A file per op lists its cases: tensors with a role each, and the call. The driver does the rest, the same for every
// case: fresh random inputs rounded to the device's dtypes, outputs poisoned with NaN or filled with values to
// accumulate onto, dense and strided views between guard zones, comparison with ref, the same bits on repetition, the
// same bits in pieces, also beside pieces of NaN, and a panic that shows the shapes if one is wrong. A new op is a new
// file and a line in the registry below.
package devicetest

import (
	"os"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// op is the conformance of one op or of a forward and backward pair.
type op struct {
	stem  string                              // its file, here and in every device
	cases func() []*Case                      // small and awkward sizes
	bench func() []*Case                      // sizes worth timing
	extra func(t *testing.T, d device.Device) // properties of this op only; may be nil
}

var ops = []op{
	{"memory", noCases, noCases, memoryExtra},
	{"zero", zeroCases, zeroBench, nil},
	{"copy", copyCases, copyBench, copyExtra},
	{"add", addCases, addBench, nil},
	{"bias", biasCases, biasBench, nil},
	{"embed", embedCases, embedBench, embedExtra},
	{"matmul", matmulCases, matmulBench, nil},
	{"rmsnorm", rmsnormCases, rmsnormBench, nil},
	{"rope", ropeCases, ropeBench, ropeExtra},
	{"swiglu", swigluCases, swigluBench, nil},
	{"attention", attentionCases, attentionBench, attentionExtra},
	{"diffattention", diffattentionCases, diffattentionBench, diffattentionExtra},
	{"subtractheads", subtractheadsCases, subtractheadsBench, nil},
	{"cache", cacheCases, cacheBench, cacheExtra},
	{"probs", probsCases, probsBench, nil},
	{"lambda", lambdaCases, lambdaBench, nil},
	{"sigmoid", sigmoidCases, sigmoidBench, nil},
	{"argmax", argmaxCases, argmaxBench, nil},
	{"classify", classifyCases, classifyBench, classifyExtra},
	{"sumsquares", sumsquaresCases, sumsquaresBench, nil},
	{"adamw", adamwCases, adamwBench, adamwExtra},
}

func noCases() []*Case { return nil }

// RunAll runs the whole conformance on d. With -short or ANTIPHASE_TEST_SHORT set it takes a third of the sizes.
func RunAll(t *testing.T, d device.Device) { RunOps(t, d) }

// RunOps is RunAll for the ops of these stems, for all ops without any. Of "classify/grad=true" it runs only the cases
// of classify whose name contains grad=true.
func RunOps(t *testing.T, d device.Device, stems ...string) {
	oracle := ref.New()
	for _, o := range ops {
		part, ok := "", len(stems) == 0
		for _, s := range stems {
			if stem, p, _ := strings.Cut(s, "/"); stem == o.stem {
				part, ok = p, true
			}
		}
		if !ok {
			continue
		}
		t.Run(o.stem, func(t *testing.T) {
			for _, c := range sizes(o.cases()) {
				if strings.Contains(c.name, part) {
					t.Run(c.name, func(t *testing.T) { c.conform(t, d, oracle) })
				}
			}
			if o.extra != nil && part == "" {
				t.Run("extra", func(t *testing.T) { o.extra(t, d) })
			}
		})
	}
}

// sizes drops cases for a short run.
func sizes(all []*Case) []*Case {
	if !testing.Short() && os.Getenv("ANTIPHASE_TEST_SHORT") == "" {
		return all
	}
	var few []*Case
	for i, c := range all {
		if (i+i/3)%3 == 0 { // one of every three, rotating, so that alternating variants are all covered
			few = append(few, c)
		}
	}
	return few
}

// RunThreads requires the same bits with one thread and with many, on every op.
func RunThreads(t *testing.T, make func(threads int) device.Device) {
	one, many := make(1), []device.Device{make(2), make(3), make(7)}
	for _, o := range ops {
		for _, c := range sizes(o.cases()) {
			v := c.values(one.Types())
			want := c.place(one, v, false).call(t).bits()
			for _, d := range many {
				c.sameBits(t, c.place(d, v, false).call(t).bits(), want, o.stem+" with more threads")
			}
		}
	}
	for _, d := range append(many, one) {
		closeDevice(t, d)
	}
}

func closeDevice(t *testing.T, d device.Device) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// RunAllocs requires that no op allocates once it has run before.
func RunAllocs(t *testing.T, d device.Device) {
	for _, o := range ops {
		for _, c := range sizes(o.cases()) {
			p := c.place(d, c.values(d.Types()), false)
			run := c.bind(p.x)
			if n := testing.AllocsPerRun(3, func() { run(d) }); n != 0 {
				t.Errorf("%s/%s: %v allocations a call, want 0", o.stem, c.name, n)
			}
			p.sync(t)
			p.free()
		}
	}
}

// BenchAll times every op on d. MB/s counts each tensor (of a cache, each row in use) once; GFLOP/s counts two per
// multiply-add of the formula.
func BenchAll(b *testing.B, d device.Device) {
	for _, o := range ops {
		for _, c := range o.bench() {
			var p *placed // created once, by the first of the runner's calls, if this one is selected at all
			b.Run(o.stem+"/"+c.name, func(b *testing.B) {
				if p == nil {
					p = c.place(d, c.values(d.Types()), false)
				}
				p.time(b)
			})
			if p != nil {
				p.free()
			}
		}
	}
}

func (p *placed) time(b *testing.B) {
	run := p.c.bind(p.x)
	run(p.d) // workspaces, kernels, caches
	p.sync(b)
	bytes := p.c.touch * (&arg{kind: p.c.unit}).dtype(p.d.Types()).Size()
	if bytes == 0 {
		for _, x := range p.x[1:] {
			bytes += tensor.Bytes(x.Type, x.Rows, x.Cols)
		}
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		run(p.d)
	}
	p.sync(b)
	if p.c.flops > 0 {
		b.ReportMetric(p.c.flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	}
}
