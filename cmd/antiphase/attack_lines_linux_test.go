package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// begins is how a command line of each verb begins, so that what follows is all that is wrong with it and an accepted
// one is short.
var begins = map[string]string{
	"ablation":        "ablation --size nano --steps 1 --dir out/ablation",
	"attend":          "attend -m run -p x --out out/page.html",
	"bench":           "bench gemm --reps 1 --warmup 0 --shape 8x8x8",
	"bench attention": "bench attention --reps 1 --warmup 0 --tokens 64 --seq 64",

	"bench decode": "bench decode --reps 1 --warmup 0 --size nano --context 8",
	"bench gemm":   "bench gemm --reps 1 --warmup 0 --shape 8x8x8",
	"bench serve":  "bench serve --url http://127.0.0.1:1 --requests 1",
	"bench train":  "bench train --reps 1 --warmup 0 --size nano",
	"chat":         "chat -m run",
	"compare":      "compare --size nano --arch diff --seeds 1 --steps 1 --probe none --dir out/experiment --dry-run",
	"convert":      "convert run out/model",
	"data build":   "data build text.txt --tokenizer bytes -o out/set",
	"data show":    "data show run --step 1",
	"eval":         "eval --tasks copa --limit 2 -m run",
	"eval ls":      "eval ls",
	"eval presets": "eval presets",
	"evidence":     "evidence .",
	"export":       "export run out/model",
	"generate":     "generate -m run -n 2 x",
	"import":       "import hf out/run",
	"launch-info":  "launch-info",
	"logits":       "logits -m run --ids 1,2",
	"pack":         "pack run -o out/x.safetensors",
	"recipes":      "recipes",
	"report":       "report run -o out/page.html",
	"scaling":      "scaling run",
	"serve":        "serve -m run --listen 127.0.0.1:0",
	"show":         "show run",
	"speedrun":     "speedrun --dir out/speedrun",
	"tokenize":     "tokenize -m run x",

	"tokenizer train": "tokenizer train text.txt --vocab 280 -o out/tok.json",
	"train":           "train --size nano --steps 1 --dir out/run",
	"validate":        "validate run",
	"version":         "version",
	"doctor":          "doctor",
	"completion bash": "completion bash",
	"help":            "help",
}

// serving are the verbs whose accepted command lines may run for long.
var serving = []string{"serve", "chat", "speedrun", "bench", "bench decode", "bench attention", "bench gemm",
	"bench train", "bench serve", "ablation", "doctor"}

// wrong are values for flags of each type: those that cannot be read, and those that can and are out of all reason.
var wrong = map[string][]string{
	"int": {"x", "", "1.5", "99999999999999999999", "-9223372036854775808", "9223372036854775807",
		"2147483648", "-2"},
	"uint":     {"x", "-1", "18446744073709551616", "18446744073709551615"},
	"float64":  {"x", "nan", "inf", "-1", "1e309", "1e300"},
	"duration": {"x", "5", "-5s", "99999999h", "0s"},
	"bool":     {"maybe", "2"},
	"string": {"", "none/such/thing", "../../outside", "\x1b[31mred", "a,b,,", "nan", "1e99", "ftp://x",
		strings.Repeat("x", 5000), "devices/null", "devices/zero"},
	"stringArray": {"", "none/such", "=", "a=", "=b", "model.layers=1000000", "train.batch=-1",
		"model.vocab=1000000000", "x@y", "a@nan", "devices/full"},
	"strings":      {"", "none", ",", "diff,diff", "x,y,z"},
	"float64Slice": {"x", "0", "-1", "nan", "1e99", ","},
	"ints":         {"x", "-1", "99999999999999999999", ","},
}

// byHand are mistakes of other kinds.
var byHand = strings.Split(`
trian
--size nano
train --size enormous
train --size nano --steps
train --size nano --size
train nosuch.yaml
train text.txt
train /dev/zero --dry-run
train . --dry-run
train --size nano --set steps=1
train --size nano --set train.stepz=1
train --size nano --set train.steps
train --size nano --set train.steps=one
train --size nano --set train.steps=1e400
train --size nano --set model.layers=0
train --size nano --set model.layers=1000000 --dry-run
train --size nano --set model.vocab=1000000000 --dry-run
train --size nano --set model.context=2147483647 --dry-run
train --size nano --set train.batch=9000000000000000000 --dry-run
train --size nano --set optim.lr=nan
train --size nano --set name=../../x
train --size nano --set tokenizer.vocab=320
train --size nano --arch diff3
train --size nano --data nonexist --dry-run
train --size nano --data 'text.txt@-1' --dir out/run
train --size nano --data image.png --dir out/run
train --size nano --device tpu
train --size nano --device cuda:99
train --size nano --precision fp7
train --size nano --precision int8 --dir out/run
train --size nano --kv-cache int9
train --size nano --threads -1
train --size nano --threads 2147483648 --dry-run
train --size nano --rank 5 --dir out/run
train --size nano --rank 0 --world-size 2 --rendezvous ftp://x --dir out/run
train --size nano --rendezvous ftp://x --dir out/run
train --size nano --rendezvous tcp://nowhere --dir out/run
train --size nano --parallel dp=2 --dir out/run
train --size nano --parallel dp=0 --dir out/run
train --size nano --parallel zero=9 --dir out/run
train --size nano --launcher nosuch --dir out/run
train --size nano --from nosuch --dir out/run
train --size nano --from text.txt --dir out/run
train --size nano --dir text.txt
train --size nano --dir /proc/x
train --size nano --dir /dev/null/x
train --size nano a b c
train --color purple
generate
generate -m
generate -m nosuch x
generate -m text.txt x
generate -m image.png x
generate -m . x
generate -m / x
generate -m org/none x
generate -m run --prompt-file nosuch
generate -m run --prompt-file /dev/zero
generate -m run --prompt-file .
generate -m run --num-samples 1000000000 x
generate -m run --num-samples 0 x
generate -m run --temperature -1 x
generate -m run --top-p 2 x
generate -m run --min-p 7 x
generate -m run --top-k -1 x
generate -m run --logprobs 5 x
generate -m run -p x y
generate -m run --stop
export
export run
export run run
export run .
export run /
export run text.txt
export run out/model --class gpt
export run out/model --dtype int3
export run out/model --max-shard-size many
export run out/model --max-shard-size -5GB
export nosuch out/model
import run
import nosuch out/run
import text.txt out/run
import hf run
convert run out/model --to nothing
pack run
pack run -o /proc/x/y
pack nosuch -o out/x
tokenize
tokenize -m nosuch x
tokenize -m run --decode x
tokenize -m run --decode 99999999999
tokenize -m run --decode -5
tokenizer
tokenizer train
tokenizer train nosuch -o out/t.json
tokenizer train text.txt --vocab 3 -o out/t.json
tokenizer train text.txt --vocab 99999999999 -o out/t.json
tokenizer train image.png -o out/t.json
data
data build
data build nosuch --tokenizer bytes -o out/set
data build text.txt --tokenizer nosuch -o out/set
data build text.txt --tokenizer text.txt -o out/set
data build text.txt --tokenizer bytes -o run
data build text.txt --tokenizer bytes -o out/set --held-out 2
data build text.txt --tokenizer bytes -o out/set --held-out-by luck
data show run --step 0
data show run --step -4
data show run --step 99999999999
data show nosuch
eval
eval --tasks nothing -m run
eval --tasks copa
eval --tasks copa -m nosuch
eval --tasks copa -m http://127.0.0.1:1/v1#x
eval --tasks copa -m run --limit -1
eval --tasks copa -m run --batch 0
eval --tasks copa -m run --batch 100000000
eval --tasks copa -m run --set copa.nothing=1
eval --tasks copa -m run --set nothing
eval --tasks copa -m run --data nosuch
eval --tasks copa -m run --preset table99
eval --tasks copa -m run -o text.txt
eval --tasks copa -m run -o /proc/x
eval --task-files nosuch -m run
eval --task-files text.txt -m run
eval --task-files image.png -m run
eval --tasks needle -m run --set needle.lengths=1000000000
eval --tasks needle -m run --set needle.lengths=-5
eval --tasks lm -m run --num-fewshot 999999
report
report nosuch
report text.txt
report out
report run -o /proc/x
scaling
scaling run
scaling nosuch
scaling run --by luck
evidence nosuch
evidence text.txt
compare --size nano --seeds 0 --dry-run
compare --size nano --seeds -1 --dry-run
compare --size nano --seeds x --dry-run
compare --size nano --lr nan --dry-run
compare --size nano --arch nothing --dry-run
compare --size nano --keep some --dry-run
compare --size nano --task nothing --dry-run
compare --size nano --variant x --dry-run
compare --size nano --dir text.txt --dry-run
compare --size nano --jobs -1 --dry-run
ablation --arch nothing
serve
serve -m nosuch
serve -m run --listen nowhere
serve -m run --listen 127.0.0.1:99999
serve -m run --listen 0.0.0.0:0
serve -m run --api-key-file nosuch
serve -m run --chat-template nosuch
serve -m run --slots 0
serve -m run --slots 1000000000
serve -m run --max-body -1
serve -m run -m run
serve -m a=run -m a=run
serve -m run --runs nosuch
bench trian
bench gemm --shape 1x2
bench gemm --shape 0x0x0
bench gemm --shape 1000000x1000000x1000000
bench train --size nothing
bench decode --size nano --context 99999999999
completion tcsh
completion
help nothing
launch-info --rank 3
launch-info --world-size 0
launch-info --launcher nothing
speedrun --plan enormous
speedrun --minutes -1
speedrun --seeds 0
validate
validate nosuch
validate text.txt
validate image.png
validate /
show
show nosuch
show text.txt
show /
logits
logits -m run
logits -m run --ids
logits -m run --ids x
logits -m run --ids -1
logits -m run --ids 99999999999
logits -m run --ids 1 --file nosuch
attend -m run
attend -m nosuch -p x
attend -m run -p x --out /proc/x
attend -m run -m run -m run -m run -m run -p x
`, "\n")

// lines are all of them: those by hand, then a wrong value for each flag of each verb.
func lines(g *rand.Rand) (out []target) {
	for _, line := range byHand {
		if line != "" {
			out = append(out, target{"", strings.Fields(strings.ReplaceAll(line, "'", ""))})
		}
	}
	flags := everyFlag()
	var more []target
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		verb, _, local := strings.Cut(name, " --")
		if !local {
			verb = "generate"
		}
		for _, value := range wrong[flags[name].Value.Type()] {
			more = append(more, target{verb, append(strings.Fields(begins[verb]), flagValue(flags[name], value)...)})
		}
	}
	g.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
	return append(out, more...)
}

func flagValue(f *pflag.Flag, value string) []string { return []string{"--" + f.Name + "=" + value} }

// TestAttackLines tries command lines that are wrong, or out of all reason.
func TestAttackLines(t *testing.T) {
	o := newOrdeal(t)
	call(t, o.dir, 0, "train", "--size", "nano", "--steps", "2", "--dir", "run", "-q")
	call(t, o.dir, 0, "export", "run", "hf", "-q")
	texts(o)
	o.devices()
	o.clear()
	list := lines(rand.New(rand.NewPCG(21, 3)))
	n := min(len(list), attempts(40, 500))
	step := max(1, len(byHand)/max(1, n)) // the short form takes some of those by hand
	for i := range n {
		line := list[i*step%len(list)]
		verb := strings.Join(line.args[:1], " ")
		serves := slices.Contains(serving, line.file) || slices.Contains(serving, verb) ||
			slices.ContainsFunc(line.args, func(a string) bool {
				return strings.HasPrefix(a, "--steps=") // many are not wrong
			})
		what := fmt.Sprintf("line %d", i)
		code, said := o.try(what, serves, line.args...)
		if code != 0 && strings.Count(said, "\n") > 2 {
			t.Errorf("%s: antiphase %.300q says more than a line:\n%s", what, line.args, said)
		}
		if code == exitFailed && !allowed(said) {
			t.Errorf("%s: antiphase %.300q is wrong and fails with 1: %s", what, line.args, said)
		}
		o.clear()
	}
	o.unharmed()
	o.report("bad command lines", n)
}

// allowed are failures that are none of the command line's: a machine without what was asked for, or nobody at the
// other end.
func allowed(said string) bool {
	for _, text := range []string{"is not available", "connection refused", "talk through MPI", "connect",
		"permission denied", "no such host"} {
		if strings.Contains(said, text) {
			return true
		}
	}
	return false
}

// devices makes devices of the test's own: as root a faulty program could replace those of the machine.
func (o *ordeal) devices() {
	dir := filepath.Join(o.dir, "devices")
	if err := os.Mkdir(dir, 0o755); err != nil {
		o.Fatal(err)
	}
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7} {
		path := filepath.Join(dir, name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err == nil {
			continue
		}
		if err := os.Symlink("/dev/"+name, path); err != nil { // not root, who alone could harm the target
			o.Fatal(err)
		}
	}
}

// unharmed: no command line has touched what it was not told to write.
func (o *ordeal) unharmed() {
	list, err := os.ReadDir(o.dir)
	if err != nil {
		o.Fatal(err)
	}
	for _, e := range list {
		switch name := e.Name(); {
		case slices.Contains([]string{"run", "hf", "out", "tasks", "recipe.json", "recipe.yaml", "image.png",
			"peak.json", "devices"}, name), strings.HasPrefix(name, "text."):
		default:
			o.Logf("a command line left %s", filepath.Join(o.dir, name))
		}
	}
	for _, name := range []string{"null", "zero", "full"} {
		if st, err := os.Stat(filepath.Join(o.dir, "devices", name)); err != nil || st.Mode()&os.ModeCharDevice == 0 {
			o.Errorf("the device %s is gone, or something else: %v", name, err)
		}
	}
	if code, said := o.try("afterwards", false, "validate", "run"); code != 0 {
		o.Errorf("the run is not what it was: %s", said)
	}
}
