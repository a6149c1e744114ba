package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// anyNumber are the flags that take every whole number.
var anyNumber = []string{"generate --seed", "chat --seed"}

// whatNumbersNeed are the arguments of verbs that look at their numbers only with those.
var whatNumbersNeed = map[string]string{
	"attend": "-m pair:diff -p x -o page.html", "data build": "text.txt --tokenizer bytes --out set",
	"data show": "run --step 1", "eval": "-m pair:diff --tasks lm",
	"generate": "-m pair:diff -p x", "logits": "-m pair:diff -p x -o x.safetensors",
	"tokenizer train": "text.txt --out tok.json", "scaling": "a b c",
	"chat": "-m pair:diff", "serve": "-m pair:diff --listen 127.0.0.1:0", "train": "--size nano --dir new",
	"compare":  "--size nano --name x --dir new",
	"ablation": "--size nano --dir new", "speedrun": "--dir new", "bench gemm": "--size nano",
	"bench train": "--size nano", "bench decode": "--size nano",
}

const lowest = "-9223372036854775808"

// The lowest whole number there is means nothing: every flag refuses it, in words that name the
// number or the flag.
func TestNoFlagTakesTheLowestNumber(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("ANTIPHASE_HOME", t.TempDir())
	flags, checked := everyFlag(), 0
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if kind := flags[name].Value.Type(); kind != "int" && kind != "int64" && kind != "intSlice" ||
			slices.Contains(anyNumber, name) {
			continue
		}
		verb, flag, _ := strings.Cut(name, "--")
		if verb = strings.TrimSpace(verb); verb == "" || verb == "bench" {
			continue // of several verbs
		}
		args := append(strings.Fields(verb), strings.Fields(whatNumbersNeed[verb])...)
		args = append(args, "--"+flag+"="+lowest, "-q")
		checked++
		code, out, errs := ran(t, args...)
		if code != exitUsage || out != "" || !strings.Contains(errs, lowest) &&
			!strings.Contains(errs, "--"+flag+": ") {
			t.Errorf("%s: exit %d, %s%s", strings.Join(args, " "), code, out, errs)
		}
	}
	if checked < 60 {
		t.Errorf("%d flags were checked", checked)
	}
}

// Every verb takes as many arguments as its usage line names: none less, unless they are in brackets, and none more,
// unless they end in dots.
func TestArgumentsAreThoseOfTheUsageLine(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, s := range c.Commands() {
			walk(s)
		}
		if !c.Runnable() || c.HasSubCommands() && c.Name() != "eval" || c.Name() == "help" ||
			c.Parent().Name() == "completion" {
			return
		}
		least, most, open := 0, 0, false
		for _, w := range strings.Fields(c.Use)[1:] {
			if strings.HasPrefix(w, "-") {
				break
			}
			if strings.Contains(w, "...") {
				open = true
			}
			if w == "..." || w == "[flags]" {
				continue
			}
			if most++; !strings.HasPrefix(w, "[") {
				least++
			}
		}
		list := slices.Repeat([]string{"x"}, most+1)
		if err := c.ValidateArgs(list[:most]); err != nil {
			t.Errorf("%s: %d arguments are refused: %v", c.CommandPath(), most, err)
		}
		if err := c.ValidateArgs(list); (err == nil) != open {
			t.Errorf("%s %s: an argument more: %v", c.CommandPath(), c.Use, err)
		}
		if least > 0 && !open && c.ValidateArgs(list[:least-1]) == nil {
			t.Errorf("%s %s: an argument is missing, and nothing refuses it", c.CommandPath(), c.Use)
		}
	}
	walk((&app{}).command(nil))
}
