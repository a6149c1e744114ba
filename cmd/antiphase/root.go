package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"antiphase/internal/fault"
	"antiphase/internal/hostmem"
	"antiphase/tensor"
)

// verbs lists the subcommands, one file each.
var verbs = []func(*app) *cobra.Command{
	speedrunVerb, trainVerb, generateVerb, chatVerb, logitsVerb, tokenizeVerb,
	showVerb, validateVerb, exportVerb, importVerb, convertVerb, recipesVerb, benchVerb, doctorVerb, evalVerb,
	reportVerb, scalingVerb, ablationVerb, dataVerb, tokenizerVerb, versionVerb,
	serveVerb, attendVerb, launchInfoVerb, compareVerb, packVerb, evidenceVerb,
}

// app is the state that all verbs share: the streams and the global flags.
type app struct {
	in        io.Reader
	out, err  io.Writer
	quiet     bool
	mute      bool // a rank other than the first
	color     string
	device    string
	ordinal   int // of the GPU if --device names none
	threads   int
	precision string
	kvCache   string
	signals   chan os.Signal // ends the context; chat takes over the signals
	stopped   os.Signal      // the signal that ended it
	parts     *parts         // ranks that split models; nil for a single process
}

// run executes a command line and returns the exit code.
func run(args []string, in io.Reader, out, errw io.Writer) int {
	stdout := &output{Writer: out}
	a := &app{in: in, out: stdout, err: errw}
	fault.Handle(crashed(a, args))
	defer fault.Guard()()
	if err := roomToStart(); err != nil {
		return a.fail(err)
	}
	root := a.command(args)
	ctx, stop := interruptible(a)
	defer stop()
	err := root.ExecuteContext(ctx)
	if stdout.err != nil && (err == nil || errors.Is(err, stdout.err)) {
		err = fmt.Errorf("standard output: %w", stdout.err)
	}
	if err != nil {
		return a.fail(err)
	}
	return 0
}

// roomToStart refuses a limit of the address space under which the runtime would end the process.
func roomToStart() error {
	if !hostmem.Cramped() {
		return nil
	}
	return &tensor.NoMemory{Where: "host", Bytes: hostmem.Reserve, Free: -1,
		Err: errors.New("ulimit -v is too low; 3000000 is enough to start")}
}

// command is the program's tree of commands, with their flags.
func (a *app) command(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "antiphase",
		Short: "Differential Transformers: train, resume, evaluate, generate, serve, inspect",
		Long: `Antiphase is a complete Differential Transformer system in one binary.

A differential head computes two softmax maps and subtracts one from the other, so that
noise common to both cancels. Start with:

  antiphase speedrun            train a Transformer, a DIFF and a DIFF V2 model and compare them
  antiphase train --size small  train one model; run it again to resume

Exit codes: 0 success, 1 failure, 2 usage, 3 bad input file, 4 out of disk or memory, 5 non-finite loss,
70 internal error, 75 stopped and saved (run it again to continue), 130 interrupted, 143 terminated.`,
		SilenceUsage: true, SilenceErrors: true,
		Version: built().String(),
	}
	root.SetArgs(args)
	root.SetIn(a.in) // before completion is added, which keeps the current stream
	root.SetOut(a.out)
	root.SetErr(a.err)
	f := root.PersistentFlags()
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print results and warnings only, no progress")
	f.StringVar(&a.color, "color", "auto", "colour output: auto, always or never")
	f.StringVar(&a.device, "device", "auto", "device: auto, cpu, cuda or cuda:N")
	f.IntVar(&a.threads, "threads", 0, "CPU threads; 0 uses all cores")
	f.StringVar(&a.precision, "precision", "auto", "dtype of weights, activations and products: fp32, bf16, int8 "+
		"(weights only; CPU inference) or auto (the fastest that trains well)")
	f.StringVar(&a.kvCache, "kv-cache", "auto", "KV cache of generation: auto (the device's dtype) or int8 (one byte "+
		"per value and one scale per head; CUDA only)")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(flagError(c, err)) })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := filled(cmd); err != nil {
			return err
		}
		if err := oneProcess(cmd); err != nil {
			return err
		}
		if a.color != "auto" && a.color != "always" && a.color != "never" {
			return usage(fmt.Errorf("--color: %q is unknown; there are auto, always and never", a.color))
		}
		return nil
	}
	for _, v := range verbs {
		root.AddCommand(v(a))
	}
	root.AddCommand(glossary())
	root.SetHelpCommand(helpVerb())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	finish(root)
	return root
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP ends, so that work can be saved; a second
// one exits at once.
func interruptible(a *app) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ch := make(chan os.Signal, 2)
	a.signals = ch
	signal.Notify(ch, endings...)
	go func() {
		defer fault.Guard()()
		s, ok := <-ch
		if !ok {
			return
		}
		a.note("\nstopping; repeat to stop at once")
		a.stopped = s
		cancel()
		if s, ok := <-ch; ok {
			if s == os.Interrupt {
				os.Exit(exitInterrupt)
			}
			os.Exit(exitTerminated)
		}
	}()
	return ctx, func() { signal.Stop(ch); close(ch); cancel() }
}
