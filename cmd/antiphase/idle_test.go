package main

import (
	"os"
	"strings"
	"testing"
)

// A flag that would change nothing is refused before any work, and says why; without the other flag it is taken.
func TestFlagsWithoutEffect(t *testing.T) {
	for args, says := range map[string]string{
		"generate -p x --json --echo":                      "--echo: has no effect with --json",
		"attend -p x --json --out a.html":                  "--out: has no effect with --json",
		"speedrun --plan short --minutes 5":                "--minutes: has no effect with --plan",
		"bench serve --save":                               "--save: has no effect in bench serve",
		"bench serve --warmup 2":                           "--warmup: has no effect in bench serve",
		"bench serve --model run --save":                   "--save: has no effect in bench serve",
		"bench serve --reps 2":                             "--reps: needs --model",
		"bench serve --batch 2":                            "--batch: needs --model",
		"bench serve --concurrency 2 --rate 1":             "--rate: cannot be combined with --concurrency",
		"bench serve --model run --url http://h":           "--url: cannot be combined with --model",
		"bench serve --model run --rate 1":                 "--rate: cannot be combined with --model",
		"bench serve --model run --requests 3":             "--requests: cannot be combined with --model",
		"bench serve --model run --served-model m":         "--served-model: cannot be combined with --model",
		"bench serve --model run --vocab 9":                "--vocab: cannot be combined with --model",
		"bench serve --model run --deadline 1s":            "--deadline: cannot be combined with --model",
		"bench serve --model run --ignore-eos=false":       "--ignore-eos: cannot be combined with --model",
		"bench serve --model run --concurrency 2":          "--concurrency: cannot be combined with --model",
		"bench gemm --shape 1x2x3 --size nano":             "--size: has no effect with --shape",
		"bench gemm --shape 1x2x3 --arch diff":             "--arch: has no effect with --shape",
		"bench gemm --shape 1x2x3 --tokens 8":              "--tokens: has no effect with --shape",
		"bench gemm --shape 1x2x3 --rows 8":                "--rows: has no effect with --shape",
		"bench gemm --shape 1x2x3 --head 8":                "--head: has no effect with --shape",
		"bench gemm --shape 1x2x3 --vocab 8":               "--vocab: has no effect with --shape",
		"train --size nano --sample-prompt x":              "--sample-prompt: has no effect without --sample-every",
		"train --size nano --sample-tokens 3":              "--sample-tokens: has no effect without --sample-every",
		"train --size nano --bandwidth 3":                  "--bandwidth: has no effect without --dry-run",
		"train --size nano --peer-timeout 3s":              "--peer-timeout: has no effect with one rank",
		"compare --size nano --tune-seeds 2":               "--tune-seeds: has no effect with one learning rate",
		"compare --size nano --lr 1e-3 --tune-by lm":       "--tune-by: has no effect with one learning rate",
		"compare --size nano --probe none --probe-every 2": "--probe-every: has no effect with --probe none",
		"generate -p x --logprobs 2":                       "--logprobs: needs --json",
		"generate x -p x":                                  "--prompt: a prompt was given as an argument as well",
		"generate x --prompt-file y":                       "--prompt-file: a prompt was given as well",
		"generate x --num-samples 0":                       "--num-samples: is 0, must be from 1 to 10000",
		"generate x --num-samples 10001":                   "--num-samples: is 10001, must be from 1 to 10000",
		"generate x --top-p 1.5":                           "--top-p: is 1.5",
		"generate x --repetition-penalty -1":               "--repetition-penalty: is -1",
		"chat --min-p 2":                                   "--min-p: is 2",
		"eval -m x -t lm --limit -1":                       "--limit is -1, must be 0 or more",
		"eval -m x -t lm --batch 0":                        "--batch is 0, must be 1 or more",
		"eval -m http://h#m -t piqa --endpoint-context 15": "--endpoint-context is 15, must be 16 or more",
		"speedrun --seeds 1001":                            "--seeds: is 1001, must be 1 to 1000",
		"speedrun --dir=":                                  "--dir: is empty",
		"compare --size nano --probe lm --probe-every 0":   "--probe-every: is 0, must be positive",
		"data build --tokenizer bytes --out x":             "want at least one source, --tokenizer and --out",

		"train --size nano --dry-run --parallel dp=2 --bandwidth 0": "--bandwidth: is 0 GB/s, must be positive",
	} {
		t.Chdir(t.TempDir())
		code, out, errs := ran(t, strings.Fields(args)...)
		if left, err := os.ReadDir("."); code != exitUsage || !strings.Contains(errs, "error: "+says) || out != "" ||
			err != nil || len(left) > 0 {
			t.Errorf("%s: exit %d, %q%q, left %v", args, code, out, errs, left)
		}
	}
}
