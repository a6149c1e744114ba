package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// cell is a planned part of the evidence: an experiment by its name.
type cell struct {
	name, what   string
	sides        []string
	rates, seeds int    // of each side
	command      string // the command to run; rows have the one that was run
	only         string // the one measure that counts, for runs too short to say more; "" for all
}

var three = []string{plain, v1, v2}

const retrievalTasks = ` --probe "needle needles=4 queries=2 samples=10" --task lm` +
	` --task "needle needles=1 queries=1 samples=40" --task "needle needles=4 queries=2 samples=40"` +
	` --task "attention needles=4 queries=1 samples=20" --task outliers` +
	` --tune-by "needle needles=4 queries=2 samples=40" --keep none`

// cells are the planned evidence; other experiments are shown too.
var cells = []cell{
	{name: "small-text", what: "(a) small (17M parameters) on books, science and other text", sides: three,
		rates: 3, seeds: 3,
		command: `antiphase compare --name small-text --size small --data 'lm/*_train*.jsonl.zst' --steps 22000` +
			` --set train.micro_batch=32 --lr 5e-4,1e-3,2e-3 --tune-seeds 1 --seeds 3 --probe none --task lm` +
			` --task "lowbit of=logits samples=4 texts=16" --task outliers` +
			` --task "attention needles=4 queries=1 samples=20" --keep none --dir runs/small-text`},
	{name: "160m-text", what: "(b) 160m (124M parameters) on the same text", sides: three, rates: 1, seeds: 3,
		command: `antiphase compare --name 160m-text --size 160m --data 'lm/*_train*.jsonl.zst' --steps 1370` +
			` --set train.batch=32 --set train.micro_batch=16 --set train.eval_every=100 --seeds 3 --probe none` +
			` --task lm --task "lowbit of=logits samples=4 texts=16 length=512" --task outliers` +
			` --task "attention needles=4 queries=1 samples=4" --keep none --dir runs/160m-text`},
	{name: "retrieval-tiny", what: "(c) retrieval, tiny (0.7M parameters), on synthetic text", sides: three,
		rates: 4, seeds: 5,
		command: `antiphase compare --name retrieval-tiny --size tiny --steps 12000 --lr 5e-4,1e-3,2e-3,4e-3` +
			` --tune-seeds 1 --seeds 5 --probe-every 500` + retrievalTasks + ` --dir runs/retrieval-tiny`},
	{name: "retrieval-small", what: "(c) retrieval, small (14.6M parameters with its vocabulary of 1,024), on " +
		"synthetic text with documents and rows twice as long as tiny's, 16,000 steps of 8,192 tokens",
		sides: three, rates: 4, seeds: 5,
		command: `antiphase compare --name retrieval-small --size small --steps 16000` +
			` --data 'synthetic:docs=600000,len=1024,mix=needle:4+kv:4+prose:1@0.5'` +
			` --data 'synthetic:seed=2,docs=300000,len=2048,mix=needle:4+kv:4+prose:1@0.5'` +
			` --set train.seq_len=512 --set train.batch=16 --set train.micro_batch=16 --set data.isolate=true` +
			` --set tokenizer.vocab=1024 --set model.vocab=1024 --set tokenizer.pattern=gpt2` +
			` --set model.init_residual=false --set optim.beta2=0.95 --lr 2.5e-4,5e-4,1e-3,2e-3 --tune-seeds 3` +
			` --seeds 5` + retrievalTasks +
			` --dir runs/retrieval-small`},
	{name: "v1-study",
		what: "why DIFF retrieves less than DIFF V2 at tiny: λ_init = 0.2 in every layer (diff-l02), no norm " +
			"over heads (diff-nonorm), and both (diff-l02-nonorm), on the data of retrieval-tiny, each with the same " +
			"tuning budget",
		sides: []string{plain, v1, flatter, noNorm, flatFree}, rates: 4, seeds: 5,
		command: `antiphase compare --name v1-study --size tiny --steps 12000 --arch transformer,diff` +
			` --variant "diff-l02 diff model.lambda_init=constant model.lambda_const=0.2"` +
			` --variant "diff-nonorm diff model.head_norm=off"` +
			` --variant "diff-l02-nonorm diff model.lambda_init=constant model.lambda_const=0.2 model.head_norm=off"` +
			` --lr 5e-4,1e-3,2e-3,4e-3 --tune-seeds 1 --seeds 5 --probe-every 500` + retrievalTasks +
			` --dir runs/v1-study`},
	{name: ablations,
		what: "(e) the published ablations, mini (3.4M parameters), on the text of (a): the paper's Table 6, and " +
			"DIFF V2's, whose variants have two heads a group",
		sides: []string{plain, v1, v2, wide, wideNorm, noNorm, constant8, constant5, grouped, moreHeads,
			noLambda, linearLambda, across}, rates: 1, seeds: 5,
		command: `antiphase compare --name ablations-mini --size mini --data 'lm/*_train*.jsonl.zst' --steps 3000` +
			` --variant "transformer-wide transformer model.heads=3 model.kv_heads=3 model.head_dim=64"` +
			` --variant "transformer-wide-norm transformer model.heads=3 model.kv_heads=3 model.head_dim=64 model.head_norm=affine"` +
			` --variant "diff-nonorm diff model.head_norm=off"` +
			` --variant "diff-l08 diff model.lambda_init=constant model.lambda_const=0.8"` +
			` --variant "diff-l05 diff model.lambda_init=constant model.lambda_const=0.5"` +
			` --variant "diff2-grouped diff2 model.kv_heads=3"` +
			` --variant "transformer-1.5h transformer model.heads=9 model.kv_heads=3 model.head_dim=32 model.ffn=448"` +
			` --variant "diff2-nolambda diff2 model.kv_heads=3 model.lambda_form=none"` +
			` --variant "diff2-linear diff2 model.kv_heads=3 model.lambda_form=linear"` +
			` --variant "diff2-across diff2 model.kv_heads=3 model.pairing=across"` +
			` --seeds 5 --probe none --task lm --task context_rms --keep none --dir runs/ablations-mini`},
	{name: "speed-160m", what: "(f) training speed, 160m, nothing else on the GPU", sides: three, rates: 1, seeds: 3,
		command: `antiphase compare --name speed-160m --size 160m --data 'synthetic:docs=20000,len=4096' --steps 150` +
			` --set train.batch=16 --set train.micro_batch=16 --set tokenizer.vocab=1024 --seeds 3 --probe none` +
			` --task throughput --keep none --dir runs/speed-160m`, only: trainSpeed},
	{name: "830m-text", what: "(d) 830m on the same text, 33M tokens: as many as half an hour on one H200 allows",
		sides: three, rates: 1, seeds: 1,
		command: `antiphase compare --name 830m-text --size 830m --data 'lm/*_train*.jsonl.zst' --steps 500` +
			` --set train.batch=32 --set train.micro_batch=16 --set train.eval_every=100 --seeds 1 --probe none` +
			` --task lm --task "lowbit of=logits samples=4 texts=16 length=512" --task outliers` +
			` --task "attention needles=4 queries=1 samples=4" --keep none --dir runs/830m-text`},
}

// unplanned describes experiments that are not part of the plan.
var unplanned = map[string]string{
	"pair": "the models embedded in the program, mini, on books and synthetic text; not planned as evidence",
}

// place is the place of an experiment in the plan, len(cells) if it is not planned.
func place(name string) int {
	if i := slices.IndexFunc(cells, func(c cell) bool { return c.name == name }); i >= 0 {
		return i
	}
	return len(cells)
}

// counts reports whether what an experiment measured counts for a claim.
func (c *claim) counts(name string) bool {
	i := place(name)
	return i == len(cells) || cells[i].only == "" || cells[i].only == c.measure
}

// cells lists what was planned, what exists, and what is missing.
func (e *evidence) cells() {
	e.WriteString("## Experiments\n\n| experiment | content | finished | compared with the plan |\n|---|---|---|---|\n")
	for i := range cells {
		c := &cells[i]
		e.row(link(c.name), fmt.Sprintf("%s: %s, %s, %s", c.what, c.compared(),
			plural(c.rates, "learning rate"), plural(c.seeds, "seed")), there(e.finals[c.name]),
			c.missing(e.finals[c.name]))
	}
	for _, name := range e.names {
		if place(name) == len(cells) {
			e.row(link(name), cmp.Or(unplanned[name], "not planned"), there(e.finals[name]), "–")
		}
	}
	e.WriteString("\n")
}

// compared counts the sides: architectures, and variants of them where there are any.
func (c *cell) compared() string {
	n := plural(len(c.sides), "architecture")
	if slices.ContainsFunc(c.sides, func(s string) bool { return !slices.Contains(three, s) }) {
		n += " and variants"
	}
	return n
}

// there describes what an experiment holds. Neighbouring sides with the same seeds and rate share a description.
func there(f *final) string {
	if f == nil || len(f.rows) == 0 {
		return "not run"
	}
	var parts, tokens []string
	last := ""
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			if seeds := f.seeds(size, arch); len(seeds) > 0 {
				runs := fmt.Sprintf(": %s (%s%s) at lr %g", plural(len(seeds), "seed"), listed(seeds),
					lostText(f, size, arch), f.best[[2]string{size, arch}])
				if n := len(parts) - 1; runs == last {
					parts[n] = strings.TrimSuffix(parts[n], last) + ", " + f.side(size, arch) + runs
				} else {
					parts = append(parts, f.side(size, arch)+runs)
				}
				last = runs
				if n := big(float64(f.tokens(size))); !slices.Contains(tokens, n) {
					tokens = append(tokens, n)
				}
			}
		}
	}
	return fmt.Sprintf("%s; %s tokens a run", strings.Join(parts, "; "), strings.Join(tokens, " or "))
}

// lostText is how many runs of a side diverged, "" if none did.
func lostText(f *final, size, arch string) string {
	switch n := f.diverged(size, arch); n {
	case 0:
		return ""
	case len(f.seeds(size, arch)):
		return "; all diverged"
	default:
		return fmt.Sprintf("; %d diverged", n)
	}
}

// complete is what missing says of an experiment that lacks nothing.
const complete = "complete"

// missing describes what an experiment lacks of its plan.
func (c *cell) missing(f *final) string {
	if f == nil || len(f.rows) == 0 {
		return "missing"
	}
	var out []string
	for _, side := range c.sides {
		seeds, rates := len(f.seeds(f.sizes[0], side)), len(f.rates(f.sizes[0], side))
		switch {
		case seeds == 0:
			out = append(out, "no run of "+side)
		case seeds < c.seeds:
			out = append(out, fmt.Sprintf("%s has %d of %d seeds", side, seeds, c.seeds))
		}
		if rates > 0 && rates < c.rates {
			out = append(out, fmt.Sprintf("%s has %d of %d learning rates", side, rates, c.rates))
		}
	}
	if len(out) == 0 {
		return complete
	}
	return fmt.Sprintf("incomplete, %d of %d runs: %s", c.finished(f), c.runs(), strings.Join(out, ", "))
}

// runs is the number of the plan: every rate with one seed, then the other seeds at the best of each side.
func (c *cell) runs() int { return len(c.sides) * (c.rates + c.seeds - 1) }

// finished is the number of runs of the plan's sides that there are.
func (c *cell) finished(f *final) int {
	var runs []string
	for _, r := range f.all {
		if slices.Contains(c.sides, r.Arch) && !slices.Contains(runs, r.Run) {
			runs = append(runs, r.Run)
		}
	}
	return len(runs)
}

// listed are seeds or rates with commas between them.
func listed[T uint64 | float64](all []T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ", ")
}

// experiment writes the section of an experiment: its command, scores, tuning grid and runs.
func (e *evidence) experiment(name string, rows []Row) {
	f := e.finals[name]
	p := Summarize(rows)
	fmt.Fprintf(e, "## %s\n\n", markdown(name))
	if i := place(name); i < len(cells) {
		if s := cells[i].missing(f); s != complete {
			e.WriteString(prose("", fmt.Sprintf("Of the plan: %s. Finished so far: %s.", s, markdown(there(f)))) + "\n")
		}
	}
	list := commands(f.all)
	for i, command := range list {
		e.command(list[0], command, i > 0)
	}
	e.WriteString(prose("", markdown(machines(f.all, f.rows))+" "+f.says()+lengths(f.rows)) + "\n")
	e.code("", p.Table(false))
	for _, t := range p.Experiment.Tables {
		e.WriteString(prose("", t.Title+". "+t.Note) + "\n")
		for i, row := range t.Rows {
			e.row(row...)
			if i == 0 {
				fmt.Fprintf(e, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
		e.WriteString("\n")
	}
}

// command writes a command of an experiment. Of one that differs from the first only by options, these are enough.
func (e *evidence) command(first, command string, later bool) {
	const some = "Some of the runs come from"
	if with, without := optionsBut(command, first), optionsBut(first, command); later && with+without != "" {
		how := "with " + with
		switch {
		case with == "":
			how = "without " + without
		case without != "":
			how += " instead of " + without
		}
		e.WriteString(prose("", some+" the same command "+how+".") + "\n")
		return
	}
	if later {
		e.WriteString(some + ":\n\n")
	}
	e.code("sh", command+"\n")
}

// optionsBut are the options of a command that another lacks, "" if the two differ in more than options.
func optionsBut(command, other string) string {
	a, b := strings.Split(command, " --"), strings.Split(other, " --")
	if a[0] != b[0] {
		return ""
	}
	var out []string
	for _, option := range a {
		if !slices.Contains(b, option) {
			out = append(out, "`--"+option+"`")
		}
	}
	return strings.Join(out, ", ")
}

// code writes a fenced block that its content cannot end.
func (e *evidence) code(language, text string) {
	fmt.Fprintf(e, "```%s\n%s```\n\n", language, strings.ReplaceAll(text, "```", "'''"))
}

// commands are those that made the rows, each once.
func commands(rows []Row) (out []string) {
	for _, r := range rows {
		if r.Command != "" && !slices.Contains(out, r.Command) {
			out = append(out, r.Command)
		}
	}
	return out
}

// lengths describes the lengths of the needle prompts.
func lengths(rows []Row) string {
	var out []string
	for _, r := range rows {
		if r.Task == nil || r.Task.Kind != "needle" {
			continue
		}
		list, _ := r.Task.Config["lengths"].([]any)
		if s := strings.Trim(fmt.Sprint(list), "[]"); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf(" Prompts with needles have %s tokens.", strings.Join(out, ", "))
}

// empty prints the commands of planned experiments that were not run.
func (e *evidence) empty() {
	for _, c := range cells {
		if e.finals[c.name] == nil {
			fmt.Fprintf(e, "## %s\n\nNot run. Its command, with the text of the other experiments in `lm/`:\n\n",
				c.name)
			e.code("sh", c.command+"\n")
		}
	}
}
