package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"antiphase/bench"
)

func benchServeVerb(a *app, f *benchFlags) *cobra.Command {
	o := bench.ServeOptions{}
	var prompt, output string
	var own servedFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Load-test an OpenAI-compatible server: time to first token, time between tokens, goodput",
		Long: `Bench serve sends completions of random token ids to any server with OpenAI's API. Requests arrive as a Poisson process
regardless of earlier answers, or with --concurrency when one is answered. ANTIPHASE_API_KEY holds the API key.

With --model it serves a model itself on loopback and alternates between the server and the engine inside it,
which shows the cost of HTTP, JSON and streaming for every --batch.`,
		Example: `  antiphase bench serve --rate 4 --requests 200 --prompt 64..512 --output 128
  antiphase bench serve --url http://other:8000 --served-model org/model --vocab 32000 --rate 10
  antiphase bench serve --model runs/small-diff --batch 1,32`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := servedApart(c.Flags()); err != nil {
				return err
			}
			if own.model != "" {
				own.seed = o.Seed
				return f.served(a, c, &own, prompt, output)
			}
			if err := completeLoad(&o, prompt, output); err != nil {
				return usage(fmt.Errorf("--%w", err))
			}
			o.Key = os.Getenv("ANTIPHASE_API_KEY")
			r, err := bench.Serve(c.Context(), o)
			if err != nil {
				return err
			}
			return f.present(a, o.URL, r)
		},
	}
	fl := c.Flags()
	fl.StringVar(&o.URL, "url", "http://127.0.0.1:8080", "base URL of the server, without /v1")
	fl.StringVar(&o.Model, "served-model", "", "model name in requests; empty uses the server's first")
	fl.Float64Var(&o.Rate, "rate", 1, "requests per second; 0 sends all at once")
	fl.IntVar(&o.Concurrency, "concurrency", 0,
		"keep this many requests open and send the next when one is answered, instead of --rate")
	fl.IntVar(&o.Requests, "requests", 100, "number of requests")
	fl.StringVar(&prompt, "prompt", "64", "prompt tokens: a number, LOW..HIGH or @FILE")
	fl.StringVar(&output, "output", "32", "answer tokens: a number, LOW..HIGH or @FILE")
	fl.IntVar(&o.Vocab, "vocab", 256, "prompts are random ids below this number")
	fl.DurationVar(&o.Deadline, "deadline", 10*time.Second, "answers within this time count as goodput")
	fl.BoolVar(&o.IgnoreEOS, "ignore-eos", true,
		"request answers of full length; OpenAI's own server rejects the field")
	fl.Uint64Var(&o.Seed, "seed", 1, "random seed of arrivals, lengths and ids")
	fl.StringVarP(&own.model, "model", "m", "", "serve this model here and compare the server with its engine: "+
		modelWords)
	fl.IntSliceVar(&own.batch, "batch", []int{1, 32}, "with --model: concurrent requests")
	return c
}

// completeLoad adds the lengths and checks all. Errors begin with the flag's name.
func completeLoad(o *bench.ServeOptions, prompt, output string) (err error) {
	if o.Prompt, err = bench.ParseLengths(prompt); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if o.Output, err = bench.ParseLengths(output); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if err := checkURL(o.URL); err != nil {
		return fmt.Errorf("url: %w", err)
	}
	return o.Check()
}

// present prints the result of a load. A server that answered nothing is an error.
func (f *benchFlags) present(a *app, url string, r *bench.ServeResult) (err error) {
	if f.json {
		err = a.json(r)
	} else {
		err = r.Print(a.out)
	}
	if err == nil && r.Failed == r.Requests {
		err = fmt.Errorf("%s answered none of %d requests: %s", url, r.Requests, mostFrequent(r.Errors))
	}
	return err
}

// mostFrequent is the key with the largest count, the first in order among equals.
func mostFrequent(counts map[string]int) string {
	keys := slices.Sorted(maps.Keys(counts))
	return slices.MaxFunc(keys, func(x, y string) int { return cmp.Compare(counts[x], counts[y]) })
}

// servedApart rejects flags that cannot be combined, and flags of the other benchmarks.
func servedApart(fl *pflag.FlagSet) error {
	for _, pair := range [][]string{{"model", "url", "rate", "requests", "served-model", "vocab", "deadline",
		"ignore-eos", "concurrency"}, {"concurrency", "rate"}} {
		for _, name := range pair[1:] {
			if fl.Changed(pair[0]) && fl.Changed(name) {
				return usage(fmt.Errorf("--%s: cannot be combined with --%s", name, pair[0]))
			}
		}
	}
	if !fl.Changed("model") {
		for _, name := range []string{"batch", "reps"} {
			if fl.Changed(name) {
				return usage(fmt.Errorf("--%s: needs --model", name))
			}
		}
	}
	return idle(fl, "in bench serve", "save", "warmup")
}
