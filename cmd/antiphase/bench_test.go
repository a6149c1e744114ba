package main

import (
	"slices"
	"strings"
	"testing"

	"antiphase/bench"
	"antiphase/device/cpu"
	"antiphase/layer"
)

// What bench refuses before it measures anything, by flag.
func TestBenchRefuses(t *testing.T) {
	for _, x := range []struct{ args, says string }{
		{"train --size=", "--size"}, {"decode --arch=", "--arch"}, {"gemm --size=", "--size"},
		{"attention --arch=", "--arch"}, {"train --warmup 0", "--warmup: is 0"},
		{"train --steps 0", "--reps: is 0"},
		{"decode --size nano --batch 0", "--batch"}, {"decode --size nano --context 0", "--context"},
		{"decode --size nano --chunk -1", "--chunk: is -1, must not be negative"},
		{"decode --size nano --context 16777217", "must be at most 16777216"},
		{"attention --seq 64 --tokens 63", "--seq: is 64"}, {"gemm --shape 1x2x0", "--shape"},
		{"serve --prompt x", "--prompt: "}, {"serve --output 0", "--output: "},
		{"serve --requests 0", "--requests: is 0"},
		{"gemm --size nano --tokens -1", "--tokens: is -1, must be between 0 and 16777216"},
		{"gemm --size nano --rows 8,0", "--rows: has 0, each must be between 1 and 16777216"},
		{"gemm --size nano --vocab -1", "--vocab: is -1, must be between 0 and 16777216"},
		{"decode --size nano --prompts 0",
			"--batch, --context and --prompts: are [1 8], 1024 and 0, must be positive"},
		{"gemm --size nano --tokens 16777217", "--tokens: is 16777217"},
		{"gemm --size nano --rows 16777217", "--rows: has 16777217"},
		{"attention --tokens 16777217", "--tokens: is 16777217"},
		{"gemm --shape 16777217x1x1", "--shape"},
		{"decode --size nano --vocab 9223372036854775807", "--vocab: is 9223372036854775807"},
		{"decode --size nano --layers 16777217", "--layers: is"},
		{"train --size nano --head -8", "--head: is -8, must be between 0 and 16777216"},
		{"train --size nano --layers -2", "--layers: is -2, must be between 0 and 16777216"},
		{"train --size nano --seq -1", "seq: is -1, must be between 0 and 16777216"},
		{"train --size nano --batch -1", "batch: is -1, must be between 0 and 16777216"},
		{"train --size nano --micro -1", "micro: is -1, must be between 0 and 16777216"},
		{"serve --batch 2", "--batch: needs --model"},
		{"serve --model run --prompt 1..2", "must be one positive number"},
		{"serve --model run --output 1", "of at least 2"},
		{"serve --model run --batch 0", "--batch and --reps"}, {"serve --model run --batch 1025", "--batch and --reps"},
		{"serve --model run --url http://x", "--model"},
		{"serve --model run --rate 3", "--model"}, {"serve --concurrency 2 --rate 3", "--rate"},
	} {
		code, out, errs := ran(t, append([]string{"bench", "--device", "cpu", "-q"}, strings.Fields(x.args)...)...)
		if code != exitUsage || !strings.Contains(errs, x.says) || out != "" {
			t.Errorf("bench %s: exit %d, %s%s", x.args, code, out, errs)
		}
	}
}

// Sizes and architectures are measured in the order given, each of one with each of the other; all is all.
func TestGeometries(t *testing.T) {
	list, err := geometries(bench.Geometry{Vocab: 300}, []string{"tiny", "nano"}, []string{"diff", "transformer"})
	var got []string
	for _, g := range list {
		got = append(got, g.Size+" "+g.Arch)
		if g.Vocab != 300 {
			t.Errorf("%+v", g)
		}
	}
	if want := []string{"tiny diff", "tiny transformer", "nano diff", "nano transformer"}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%q (%v)", got, err)
	}
	if got := archNames([]string{"all"}); len(got) != len(layer.Archs()) || got[0] != layer.Archs()[0].Name {
		t.Errorf("%q", got)
	}
	if got := archNames([]string{"all", "diff"}); len(got) != 2 {
		t.Errorf("%q", got)
	}
	for precision, bytes := range map[cpu.Precision]float64{cpu.FP32: 4, cpu.BF16: 2, cpu.Int8: 1} {
		d := cpu.New(cpu.Options{Threads: 3, Precision: precision})
		b := newBenchConfig(&app{threads: 3}, d)
		if b.WeightBytes != bytes || b.Product.Unit != bench.UnitFLOPs || b.Bandwidth.Unit != bench.UnitBytes ||
			!strings.HasSuffix(b.Product.Name, " in registers, 3 threads") ||
			b.Bandwidth.Name != "read of 512 MiB, 3 threads" {
			t.Errorf("%v: %+v", precision, b)
		}
		d.Close()
	}
}
