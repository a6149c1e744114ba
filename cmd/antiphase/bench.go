package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antiphase/bench"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/layer"
)

// benchFlags are those that all benchmarks share.
type benchFlags struct {
	json, save   bool
	reps, warmup int
}

func benchVerb(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure matrix products, attention, training steps, decoding and serving on this machine",
		Example: `  antiphase bench train --size small --arch all --ops
  antiphase bench decode --size small --batch 1,8
  antiphase bench gemm --size 160m --json`,
		Args: cobra.NoArgs,
	}
	var f benchFlags
	p := c.PersistentFlags()
	p.BoolVar(&f.json, "json", false, "print JSON")
	p.BoolVar(&f.save, "save", false, "append the rows to "+filepath.Join("results", "bench"))
	p.IntVar(&f.reps, "reps", 10, "measured repetitions")
	p.IntVar(&f.warmup, "warmup", 3, "unmeasured repetitions before them")
	c.AddCommand(benchGemmVerb(a, &f), benchAttentionVerb(a, &f), benchTrainVerb(a, &f), benchDecodeVerb(a, &f),
		benchServeVerb(a, &f))
	return c
}

func benchTrainVerb(a *app, f *benchFlags) *cobra.Command {
	var t bench.TrainOptions
	var sizes, archs []string
	c := &cobra.Command{
		Use:   "train",
		Short: "Measure tokens per second and memory of a training step, and the time of each op",
		Example: `  antiphase bench train --size small --arch all
  antiphase bench train --size 160m --seq 2048 --batch 16 --steps 20 --ops --device cuda`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := geometries(t.Geometry, sizes, archs)
			if err != nil {
				return err
			}
			for _, t.Geometry = range list {
				if err := t.Check(); err != nil {
					return usage(err)
				}
			}
			return f.measure(a, func(b *bench.Config, emit func(bench.Row)) error {
				for _, t.Geometry = range list {
					row, err := b.Train(c.Context(), t)
					if err != nil {
						return err
					}
					emit(row)
				}
				return nil
			})
		},
	}
	geometryFlags(c, &t.Geometry, &sizes, &archs, "all")
	layersFlag(c, &t.Geometry)
	c.Flags().IntVar(&t.Seq, "seq", 0, "tokens per sequence; 0 keeps the recipe's")
	c.Flags().IntVar(&t.Batch, "batch", 0, "sequences per step; 0 uses the recipe's micro-batch")
	c.Flags().IntVar(&t.Micro, "micro", 0, "sequences per micro-batch; 0 uses the whole step")
	c.Flags().BoolVar(&t.Forward, "forward", false, "measure only the forward pass with losses")
	c.Flags().StringVar((*string)(&t.Recompute), "recompute", "",
		"activations recomputed in the backward pass: off, attention or blocks (default: the recipe's)")
	c.Flags().IntVar(&f.reps, "steps", 10, "measured steps; same as --reps")
	c.Flags().BoolVar(&t.Ops, "ops", false, "also run steps op by op and list the time of each op")
	return c
}

func benchGemmVerb(a *app, f *benchFlags) *cobra.Command {
	var o bench.GemmOptions
	var sizes, archs, shapes []string
	c := &cobra.Command{
		Use:   "gemm",
		Short: "Measure every matrix product of a size: forward and both gradients, the classifier, decoding",
		Example: `  antiphase bench gemm --size small
  antiphase bench gemm --size 160m --arch diff2 --tokens 4096 --rows 1,16
  antiphase bench gemm --shape 1024x768x768,4096x3072x768`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := geometries(o.Geometry, sizes, archs)
			if err != nil {
				return err
			}
			if err := o.Check(); err != nil {
				return usage(fmt.Errorf("--%w", err))
			}
			products, err := parseShapes(shapes)
			if err == nil && len(products) > 0 {
				err = idle(c.Flags(), "with --shape, which names the products", "size", "arch", "head", "vocab",
					"tokens", "rows")
			}
			if err != nil {
				return err
			}
			return f.measure(a, func(b *bench.Config, emit func(bench.Row)) error {
				if len(products) > 0 {
					return b.Products(c.Context(), products, emit)
				}
				for _, o.Geometry = range list {
					if err := b.Gemm(c.Context(), o, emit); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	geometryFlags(c, &o.Geometry, &sizes, &archs, layer.Archs()[0].Name)
	c.Flags().IntVar(&o.Tokens, "tokens", 0, "rows of the training products; 0 takes the recipe's micro-batch")
	c.Flags().IntSliceVar(&o.Rows, "rows", []int{1, 8, 64}, "rows of the decoding products")
	c.Flags().StringSliceVar(&shapes, "shape", nil,
		"products of these rows × outputs × inputs instead, such as 1024x768x3072")
	return c
}

// parseShapes reads ROWSxOUTxIN.
func parseShapes(list []string) (out []bench.Shape, err error) {
	for _, s := range list {
		var sides []int
		for part := range strings.SplitSeq(s, "x") {
			if n, err := strconv.Atoi(part); err == nil && n > 0 && n <= 1<<24 {
				sides = append(sides, n)
			}
		}
		if len(sides) != 3 || strings.Count(s, "x") != 2 {
			return nil, usage(fmt.Errorf("--shape: %q is not a product; want ROWSxOUTxIN, such as 1024x768x3072", s))
		}
		out = append(out, bench.Shape{Rows: sides[0], Out: sides[1], In: sides[2]})
	}
	return out, nil
}

func benchAttentionVerb(a *app, f *benchFlags) *cobra.Command {
	var o bench.AttentionOptions
	var archs []string
	var seqs []int
	c := &cobra.Command{
		Use:   "attention",
		Short: "Measure attention of every architecture at one width, forward and backward",
		Example: `  antiphase bench attention --dim 768 --head 64 --seq 512,2048 --tokens 4096
  antiphase bench attention --dim 2048 --head 128 --seq 2048,8192 --tokens 32768 --device cuda`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []bench.AttentionOptions
			for _, o.Seq = range seqs {
				for _, o.Arch = range archNames(archs) {
					if err := o.Check(); err != nil {
						return usage(fmt.Errorf("--%w", err))
					}
					list = append(list, o)
				}
			}
			if err := some("--seq and --arch", list); err != nil {
				return err
			}
			return f.measure(a, func(b *bench.Config, emit func(bench.Row)) error {
				for _, o := range list {
					if err := b.Attention(c.Context(), o, emit); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.Flags().StringSliceVar(&archs, "arch", []string{"all"}, "architectures, or all")
	c.Flags().IntVar(&o.Dim, "dim", 2048, "model width")
	c.Flags().IntVar(&o.Head, "head", 128, "width of a query or key head")
	c.Flags().IntSliceVar(&seqs, "seq", []int{2048, 8192}, "tokens per sequence")
	c.Flags().IntVar(&o.Tokens, "tokens", 32768, "total tokens of all sequences")
	return c
}

func benchDecodeVerb(a *app, f *benchFlags) *cobra.Command {
	var o bench.DecodeOptions
	var sizes, archs []string
	c := &cobra.Command{
		Use:   "decode",
		Short: "Measure prompt and generated tokens per second, and the bytes a step moves",
		Example: `  antiphase bench decode --size small --batch 1,8 --context 512
  antiphase bench decode --size 160m,830m --batch 1,64 --context 4096 --device cuda`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := geometries(o.Geometry, sizes, archs)
			if err != nil {
				return err
			}
			if len(o.Batch) == 0 || slices.Min(o.Batch) < 1 || min(o.Prompt, o.Prompts) < 1 {
				return usage(fmt.Errorf("--batch, --context and --prompts: are %v, %d and %d, must be positive",
					o.Batch, o.Prompt, o.Prompts))
			}
			if o.Chunk < 0 {
				return usage(fmt.Errorf("--chunk: is %d, must not be negative", o.Chunk))
			}
			if most := 1 << 24; o.Prompt > most {
				return usage(fmt.Errorf("--context: is %d, must be at most %d", o.Prompt, most))
			}
			return f.measure(a, func(b *bench.Config, emit func(bench.Row)) error {
				for _, o.Geometry = range list {
					if err := b.Decode(c.Context(), o, emit); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	geometryFlags(c, &o.Geometry, &sizes, &archs, "all")
	layersFlag(c, &o.Geometry)
	c.Flags().IntSliceVar(&o.Batch, "batch", []int{1, 8}, "sequences per batch")
	c.Flags().IntVar(&o.Prompt, "context", 1024, "tokens already in each sequence's cache")
	c.Flags().IntVar(&o.Prompts, "prompts", 1, "prompts computed together when measuring prompt tokens per second")
	c.Flags().IntVar(&o.Chunk, "chunk", 0,
		"maximum prompt tokens per step; 0 is the device's preference: 8192 on a GPU, 512 on a CPU")
	c.Flags().BoolVar(&o.Ops, "ops", false, "also run steps op by op and list the time of each op")
	return c
}

// geometryFlags are the flags of a named size.
func geometryFlags(c *cobra.Command, g *bench.Geometry, sizes, archs *[]string, arch string) {
	c.Flags().StringSliceVar(sizes, "size", []string{"small"}, "sizes, see \"antiphase recipes\"")
	c.Flags().StringSliceVar(archs, "arch", []string{arch}, "architectures, or all")
	c.Flags().IntVar(&g.Head, "head", 0, "override the width of query and key heads")
	c.Flags().IntVar(&g.Vocab, "vocab", 0, "override the vocabulary size")
}

// layersFlag adds the flag for benchmarks that measure more than single products.
func layersFlag(c *cobra.Command, g *bench.Geometry) {
	c.Flags().IntVar(&g.Layers, "layers", 0, "override the number of layers")
}

// archNames are the architectures that --arch names.
func archNames(names []string) []string {
	if len(names) != 1 || names[0] != "all" {
		return names
	}
	names = nil
	for _, a := range layer.Archs() {
		names = append(names, a.Name)
	}
	return names
}

// geometries lists all that the flags name; each is checked before anything is measured.
func geometries(g bench.Geometry, sizes, archs []string) (list []bench.Geometry, err error) {
	for _, g.Size = range sizes {
		for _, g.Arch = range archNames(archs) {
			if err := g.Check(); err != nil {
				return nil, usage(fmt.Errorf("--%w", err))
			}
			list = append(list, g)
		}
	}
	return list, some("--size and --arch", list)
}

// some rejects flags that name nothing to measure.
func some[T any](flags string, list []T) error {
	if len(list) == 0 {
		return usage(fmt.Errorf("%s: each needs at least one value", flags))
	}
	return nil
}

// measure opens the device, runs a benchmark and prints its rows, also those completed before an interruption or error.
func (f *benchFlags) measure(a *app, run func(b *bench.Config, emit func(bench.Row)) error) error {
	if f.reps < 1 {
		return usage(fmt.Errorf("--reps: is %d, must be at least 1", f.reps))
	}
	if f.warmup < 1 {
		return usage(fmt.Errorf("--warmup: is %d, must be at least 1: the first run compiles kernels and packs weights",
			f.warmup))
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	b := newBenchConfig(a, d)
	b.Warmup, b.Reps, b.Say = f.warmup, f.reps, a.note
	a.note("%s", d.Name())
	rows := []bench.Row{}
	stamp := bench.Stamp{Commit: version(), Time: time.Now().UTC().Truncate(time.Second),
		Command: strings.Join(os.Args[1:], " "),
		Machine: bench.Machine{Device: d.Name(), OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}}
	err = run(b, func(r bench.Row) {
		r.Stamp = stamp
		rows = append(rows, r)
	})
	if err == nil || len(rows) > 0 {
		if e := f.finish(a, rows); e != nil {
			return e
		}
	}
	return err
}

func (f *benchFlags) finish(a *app, rows []bench.Row) error {
	if f.save {
		if err := bench.Save(filepath.Join("results", "bench"), rows); err != nil {
			return err
		}
	}
	if f.json {
		return a.json(rows)
	}
	return bench.Print(a.out, rows)
}

// ceilingTime is how long the peak of products is measured; bandwidth takes five times as long. ceilingBytes is the
// size of the array that is read for it. Tests of flags use less.
var ceilingTime, ceilingBytes = 20 * time.Millisecond, 512 << 20

// newBenchConfig gives a benchmark its device and the device's known ceilings: for a CPU the loops of device/cpu.
func newBenchConfig(a *app, d device.Device) *bench.Config {
	b := &bench.Config{Device: d}
	c, ok := d.(*cpu.Device)
	if !ok {
		return b
	}
	name := cpu.PeakOf(c.Precision())
	threads := workers(a)
	b.WeightBytes = map[cpu.Precision]float64{cpu.FP32: 4, cpu.BF16: 2, cpu.Int8: 1}[c.Precision()]
	turn, read := ceilingTime, ceilingBytes
	b.Product = bench.Ceiling{Name: fmt.Sprintf("%s in registers, %d threads", name, threads), Unit: bench.UnitFLOPs,
		Run: func() (float64, error) {
			x, err := cpu.Peak(name, threads, turn)
			return x / 1e12, err
		}}
	b.Bandwidth = bench.Ceiling{Name: fmt.Sprintf("read of %d MiB, %d threads", read>>20, threads),
		Unit: bench.UnitBytes, Run: func() (float64, error) {
			return cpu.ReadBandwidth(read, threads, 5*turn) / 1e9, nil
		}}
	return b
}
