package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"antiphase/bench"
	"antiphase/internal/fault"
	"antiphase/server"
	"antiphase/tokenizer"
)

// servedFlags are those of bench serve --model.
type servedFlags struct {
	model string
	batch []int
	seed  uint64
}

// served serves a model on loopback and compares the server with its engine.
func (f *benchFlags) served(a *app, c *cobra.Command, own *servedFlags, prompt, output string) error {
	o := bench.ServedOptions{Batch: own.batch, Rounds: f.reps, Seed: own.seed, Say: a.note}
	var err error
	if o.Prompt, err = strconv.Atoi(prompt); err != nil || o.Prompt < 1 {
		return usage(fmt.Errorf("--prompt: is %q, must be one positive number with --model", prompt))
	}
	if o.Output, err = strconv.Atoi(output); err != nil || o.Output < 2 {
		return usage(fmt.Errorf("--output: is %q, must be one number of at least 2 with --model", output))
	}
	if len(o.Batch) == 0 || slices.Min(o.Batch) < 1 || slices.Max(o.Batch) > 1024 || f.reps < 1 {
		return usage(fmt.Errorf("--batch and --reps: are %v and %d, must be positive, and a batch at most 1024",
			o.Batch, f.reps))
	}
	slots := slices.Max(o.Batch)
	flags := &serveFlags{models: []string{own.model}, limits: server.DefaultLimits()}
	flags.options.Slots, flags.options.CacheTokens = slots, slots*(o.Prompt+o.Output+32)
	models, done, err := a.serveModels(c.Context(), flags)
	defer done()
	if err != nil {
		return err
	}
	m := models[0]
	if o.Prompt+o.Output > m.Context {
		return usage(fmt.Errorf("--prompt and --output: %d and %d tokens do not fit the context of %d", o.Prompt,
			o.Output, m.Context))
	}
	s, err := server.New(server.Config{Limits: flags.limits})
	if err == nil {
		err = s.Ready(m)
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.Context())
	ended := make(chan error, 1)
	go func() {
		defer fault.Guard()()
		ended <- s.Serve(ctx, l)
	}()
	defer func() { stop(); <-ended }()
	o.Engine, o.IDs, o.URL = m.Engine, written(m.Tokenizer), "http://"+l.Addr().String()
	rows, err := bench.Served(ctx, o)
	if err != nil {
		return err
	}
	if f.json {
		return a.json(rows)
	}
	return bench.PrintServed(a.out, rows)
}

// written are the ids that decode to whole characters.
func written(t *tokenizer.Tokenizer) (ids []int32) {
	for id := range int32(t.Vocab()) {
		if b := t.TokenBytes(id); len(b) > 0 && utf8.Valid(b) && !t.Special(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
