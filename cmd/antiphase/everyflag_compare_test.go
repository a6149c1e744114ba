package main

// forecast is the dry run of an experiment of nano models.
func (f *flagRig) forecast(args ...string) string {
	f.Helper()
	return f.ok(append([]string{"compare", "--size", "nano", "--device", "cpu", "--dry-run", "--json"}, args...)...)
}

var ofCompare = map[string]assertion{
	"compare --variant": func(f *flagRig) {
		f.has(f.forecast("--arch", "diff", "--variant", "flat diff model.lambda_init=constant"), `"arch": "flat"`)
		f.has(f.fails("compare", "--variant", "flat diff"), `want NAME ARCH KEY=VALUE`)
	},
	"compare --arch": func(f *flagRig) {
		f.lacks(f.forecast("--arch", "diff2"), `"arch": "diff"`)
		f.has(f.forecast("--arch", "diff2"), `"arch": "diff2"`)
	},
	"compare --seeds": func(f *flagRig) { f.has(f.forecast("--arch", "diff", "--seeds", "4,9"), `"runs": 2\b`) },
	"compare --lr": func(f *flagRig) {
		f.has(f.forecast("--arch", "diff", "--seeds", "1", "--lr", "1e-3,2e-3"), `"runs": 2\b`)
	},
	"compare --tune-seeds": func(f *flagRig) {
		f.has(f.forecast("--arch", "diff", "--lr", "1e-3,2e-3", "--tune-seeds", "2"), `"tuning_runs": 4\b`)
	},
	"compare --steps": func(f *flagRig) {
		f.has(f.forecast("--arch", "diff", "--seeds", "1", "--steps", "7"), `"tokens": 896\b`)
	},
	"compare --dry-run": func(f *flagRig) {
		f.forecast("--dir", "never")
		f.lacks(map[bool]string{true: "made"}[f.exists("never")], "made")
	},
	"compare --json": func(f *flagRig) { f.has(f.forecast(), `^\{\n`) },
	"compare --jobs": func(f *flagRig) { f.has(f.fails("compare", "--size", "nano", "--jobs", "0"), `--jobs: is 0`) },
	"compare --size": func(f *flagRig) { f.has(f.fails("compare", "--size", "huge"), `"huge" is unknown`) },
	"compare --keep": func(f *flagRig) {
		f.has(f.fails("compare", "--size", "nano", "--keep", "some"),
			`"some" is unknown`)
	},
}
