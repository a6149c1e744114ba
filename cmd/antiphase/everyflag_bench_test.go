package main

import (
	"encoding/json"
	"fmt"

	"antiphase/bench"
)

// measured runs a benchmark of the smallest size, once, and gives its rows.
func (f *flagRig) measured(verb string, args ...string) (rows []bench.Row) {
	f.Helper()
	args = append([]string{"bench", verb, "--device", "cpu", "--reps", "1", "--warmup", "1", "--json", "-q"}, args...)
	if err := json.Unmarshal([]byte(f.ok(args...)), &rows); err != nil || len(rows) == 0 {
		f.Fatalf("%q: %d rows, %v", args, len(rows), err)
	}
	return rows
}

// shaped: with the flag the rows' shape has this value, and without it another.
func shaped(verb, key string, want any, base []string, args ...string) assertion {
	return func(f *flagRig) {
		with, without := f.measured(verb, append(base, args...)...), f.measured(verb, base...)
		if got := fmt.Sprint(with[0].Shape[key]); got != fmt.Sprint(want) {
			f.Errorf("%s is %s, want %v", key, got, want)
		}
		if was := fmt.Sprint(without[0].Shape[key]); was == fmt.Sprint(want) {
			f.Errorf("%s is %v without the flag too", key, want)
		}
	}
}

// named: the rows' names have the pattern with the flag, and lack it without.
func named(verb, pattern string, base []string, args ...string) assertion {
	names := func(rows []bench.Row) (s string) {
		for _, r := range rows {
			s += r.Name + "\n"
		}
		return s
	}
	return func(f *flagRig) {
		f.has(names(f.measured(verb, append(base, args...)...)), pattern)
		f.lacks(names(f.measured(verb, base...)), pattern)
	}
}

var (
	trainBase  = []string{"--size", "nano", "--arch", "diff"}
	decodeBase = []string{"--size", "nano", "--arch", "diff", "--batch", "1", "--context", "8"}
	attnBase   = []string{"--arch", "diff", "--tokens", "32", "--seq", "16", "--dim", "32", "--head", "8"}
	shapeBase  = []string{"--shape", "8x8x8"}
)

var ofBench = map[string]assertion{
	"bench --json":   func(f *flagRig) { f.measured("gemm", shapeBase...) },
	"bench --reps":   func(f *flagRig) { f.repeats(5, 1) },
	"bench --warmup": func(f *flagRig) { f.repeats(1, 4) },
	"bench --save": func(f *flagRig) {
		f.measured("gemm", shapeBase...)
		if f.exists("results/bench") {
			f.Error("rows were saved unasked")
		}
		f.measured("gemm", append(shapeBase, "--save")...)
		if len(f.files("results/bench", ".jsonl")) != 1 {
			f.Error("no rows were saved")
		}
	},
	"bench attention --arch": shaped("attention", "arch", "diff2", attnBase[2:], "--arch", "diff2"),
	"bench attention --dim":  shaped("attention", "dim", 64, attnBase, "--dim", "64"),
	"bench attention --head": shaped("attention", "head_dim", 4, attnBase, "--head", "4"),
	"bench attention --seq": func(f *flagRig) {
		if r := f.measured("attention", "--arch", "diff", "--tokens", "32", "--dim", "32", "--head", "8", "--seq",
			"8"); r[0].Shape["seq"] != 8.0 {
			f.Errorf("shape %v", r[0].Shape)
		}
	},
	"bench attention --tokens": shaped("attention", "batch", 4, attnBase, "--tokens", "64"),
	"bench decode --arch":      named("decode", "transformer", decodeBase, "--arch", "transformer"),
	"bench decode --batch":     named("decode", "decode batch 3 ", decodeBase, "--batch", "3"),
	"bench decode --context":   named("decode", "context 12", decodeBase, "--context", "12"),
	"bench decode --prompts":   named("decode", "prefill batch 2 ", decodeBase, "--prompts", "2"),
	"bench decode --size":      named("decode", "tiny", decodeBase, "--size", "tiny"),
	"bench decode --head":      shaped("decode", "head_dim", 4, decodeBase, "--head", "4"),
	"bench decode --layers":    shaped("decode", "layers", 1, decodeBase, "--layers", "1"),
	"bench decode --vocab":     shaped("decode", "vocab", 512, decodeBase, "--vocab", "512"),
	"bench decode --ops":       func(f *flagRig) { f.listsOps("decode", decodeBase) },
	"bench decode --chunk": func(f *flagRig) {
		f.has(f.fails("bench", "decode", "--size", "nano", "--chunk", "-1"), `--chunk`)
		f.measured("decode", append(decodeBase, "--chunk", "4")...)
	},
	"bench gemm --shape":      func(f *flagRig) { f.has(f.measured("gemm", "--shape", "8x9x10")[0].Name, "8×9×10") },
	"bench gemm --size":       swept("^nano "),
	"bench gemm --arch":       swept(`attn.qkv .* 16×128×32`),    // DIFF V2's queries are twice as wide
	"bench gemm --head":       swept(`mlp.gate_up .* 16×160×32`), // 176 with heads of 8: the models stay equal in size
	"bench gemm --tokens":     swept(`dW.* 16×`),
	"bench gemm --rows":       swept(` 5×`),
	"bench gemm --vocab":      swept(`×768×`),
	"bench train --arch":      named("train", "transformer", trainBase, "--arch", "transformer"),
	"bench train --size":      named("train", "tiny", trainBase, "--size", "tiny", "--batch", "2", "--seq", "16"),
	"bench train --batch":     named("train", "batch 2\n", trainBase, "--batch", "2"),
	"bench train --seq":       named("train", "T=16 ", trainBase, "--seq", "16"),
	"bench train --head":      shaped("train", "head_dim", 4, trainBase, "--head", "4"),
	"bench train --layers":    shaped("train", "layers", 1, trainBase, "--layers", "1"),
	"bench train --vocab":     shaped("train", "vocab", 512, trainBase, "--vocab", "512"),
	"bench train --micro":     shaped("train", "micro_batch", 2, trainBase, "--micro", "2"),
	"bench train --recompute": shaped("train", "recompute", "blocks", trainBase, "--recompute", "blocks"),
	"bench train --forward":   named("train", "forward", trainBase, "--forward"),
	"bench train --ops":       func(f *flagRig) { f.listsOps("train", trainBase) },
	"bench train --steps": func(f *flagRig) {
		if r := f.measured("train", append(trainBase, "--steps", "3")...); r[0].Reps != 3 {
			f.Errorf("%d repetitions, want 3", r[0].Reps)
		}
	},
}

// sweep are the products of a size, with every flag that changes them: measured once, for all of the flags.
var sweep string

func swept(pattern string) assertion {
	return func(f *flagRig) {
		if sweep == "" {
			for _, r := range f.measured("gemm", "--size", "nano", "--arch", "diff2", "--tokens", "16", "--rows", "5",
				"--vocab", "768", "--head", "4") {
				sweep += r.Name + "\n"
			}
		}
		f.has(sweep, "(?m)"+pattern)
	}
}

// repeats holds --reps and --warmup to what the rows say.
func (f *flagRig) repeats(reps, warmup int) {
	f.Helper()
	r := f.measured("gemm", append(shapeBase, "--reps", fmt.Sprint(reps), "--warmup", fmt.Sprint(warmup))...)
	if r[0].Reps != reps || r[0].Warmup != warmup {
		f.Errorf("%d repetitions after %d, want %d after %d", r[0].Reps, r[0].Warmup, reps, warmup)
	}
}

// listsOps: --ops adds where the time goes, and nothing does without it.
func (f *flagRig) listsOps(verb string, base []string) {
	f.Helper()
	count := func(args ...string) (n int) {
		for _, r := range f.measured(verb, args...) {
			n += len(r.Ops)
		}
		return n
	}
	if with, without := count(append(base, "--ops")...), count(base...); with == 0 || without != 0 {
		f.Errorf("%d ops with the flag, %d without", with, without)
	}
}
