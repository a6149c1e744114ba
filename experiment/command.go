package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"antiphase/recipe"
)

// EvalSeed is the random seed of the questions unless a command has one.
const EvalSeed = 20

// DefaultAsks are the tasks and probes of a command without any: those that fit the rows of all sizes.
func DefaultAsks(sizes []string, arch string) (tasks, probes []Ask) {
	const room = 256 // tokens: a needle prompt with its answer
	for _, size := range sizes {
		if r, err := recipe.Named(size, arch); err != nil || r.Train.SeqLen < room {
			return []Ask{"lm", "outliers"}, nil
		}
	}
	return []Ask{"lm", "needle needles=1 queries=1 samples=20", "needle needles=4 queries=2 samples=20",
		"attention needles=4 queries=1 samples=10", "outliers"}, []Ask{"needle needles=4 queries=2 samples=8"}
}

// commanded is the experiment as a command of compare has it, in what decides the numbers of a run besides its rate,
// its seed and the tokenizer, which are those of s.
func commanded(s *Spec, command string) (*Spec, error) {
	flags := flagsOf(command)
	last := func(flag, none string) string {
		if list := flags[flag]; len(list) > 0 {
			return list[len(list)-1]
		}
		return none
	}
	out, sizes := *s, strings.Split(strings.Join(flags["size"], ","), ",")
	if len(flags["size"]) == 0 {
		sizes = []string{"tiny"}
	}
	out.Data, out.Set, out.Variants = flags["data"], flags["set"], nil
	for _, v := range flags["variant"] {
		out.Variants = append(out.Variants, Variant(v))
	}
	out.Tasks, out.Probes = DefaultAsks(sizes, s.Archs[0])
	for flag, list := range map[string]*[]Ask{"task": &out.Tasks, "probe": &out.Probes} {
		if len(flags[flag]) > 0 {
			*list = nil
		}
		for _, a := range flags[flag] {
			if flag != "probe" || a != "none" {
				*list = append(*list, Ask(a))
			}
		}
	}
	var errs [3]error
	out.Steps, errs[0] = strconv.Atoi(last("steps", "0"))
	out.Every, errs[1] = strconv.Atoi(last("probe-every", "0"))
	out.EvalSeed, errs[2] = strconv.ParseUint(last("eval-seed", fmt.Sprint(EvalSeed)), 0, 64)
	return &out, first(errs[:])
}

// otherwise says in what a command that made a run differs from the experiment, as far as it decides the run's numbers;
// "" if in nothing, or if it is no command of compare.
func otherwise(s *Spec, r *Run, command string) string {
	if !slices.Contains(shellWords(command), "compare") {
		return ""
	}
	there, err := commanded(s, command)
	if err != nil {
		return fmt.Sprintf("a command that cannot be read (%v)", err)
	}
	was, err := there.recipe(&Run{Size: r.Size, Arch: r.Arch, LR: r.LR, Seed: r.Seed})
	if err != nil {
		return fmt.Sprintf("no such side, or settings that are none (%v)", err)
	}
	if a, b := sourcesOf(&was), sourcesOf(&r.Recipe); !slices.Equal(a, b) {
		return fmt.Sprintf("--data %q, here it is %q", a, b)
	}
	here := r.Recipe.Fields()
	for i, f := range was.Fields() {
		if f.Value != here[i].Value && !slices.Contains(apart, f.Path) {
			return fmt.Sprintf("%s=%s, here it is %s (--set, --variant or --steps)", f.Path, f.Value, here[i].Value)
		}
	}
	for _, x := range []struct {
		flag        string
		there, here []Ask
	}{{"--task", there.Tasks, s.Tasks}, {"--probe", there.Probes, s.Probes}} {
		a, b := slices.Sorted(slices.Values(wordsOf(x.there))), slices.Sorted(slices.Values(wordsOf(x.here)))
		if !slices.Equal(a, b) {
			return fmt.Sprintf("%s %q, here they are %q", x.flag, a, b)
		}
	}
	switch {
	case there.Every != s.Every && len(s.Probes) > 0:
		return fmt.Sprintf("--probe-every %d, here it is %d", there.Every, s.Every)
	case there.EvalSeed != s.EvalSeed:
		return fmt.Sprintf("--eval-seed %d, here it is %d", there.EvalSeed, s.EvalSeed)
	}
	return ""
}

// sourcesOf are the sources of a recipe as far as they are the same on every machine: files may have other paths.
func sourcesOf(r *recipe.Recipe) (out []string) {
	for _, src := range r.Data.Sources {
		path := "files"
		if generated([]recipe.Source{src}) {
			path = src.Path
		}
		out = append(out, fmt.Sprintf("%s, weight %g, epochs %g", path, src.Weight, src.Epochs))
	}
	return out
}

// flagsOf are the values of a command's flags by their names, in the order in which they stand. A flag without a value
// has "".
func flagsOf(command string) map[string][]string {
	out := map[string][]string{}
	words := shellWords(command)
	for i := 0; i < len(words); i++ {
		name, ok := strings.CutPrefix(words[i], "--")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		out[name] = append(out[name], value)
	}
	return out
}

// shellWords splits a line into words as a shell does, as far as ShellWord and the commands of the plan use its rules:
// marks of either kind quote everything to the next of their kind, and outside of them \' is a plain mark.
func shellWords(line string) (out []string) {
	var word strings.Builder
	quote, begun := rune(0), false
	text := []rune(line)
	for i := 0; i < len(text); i++ {
		r := text[i]
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			if quote == 0 && r == '\\' && i+1 < len(text) && text[i+1] == '\'' {
				i++
				r = '\''
			}
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
