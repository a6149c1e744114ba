package main

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda"
	"antiphase/train"
)

func doctorVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor",
		Short:   "Show the detected hardware, what is used, and what is not used and why",
		Example: "  antiphase doctor\n  antiphase doctor --json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runDoctor(a, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// simdEnv forces a set of kernels.
const simdEnv = "ANTIPHASE_SIMD"

type fact struct{ Key, Value string }

func runDoctor(a *app, asJSON bool) error {
	d, err := openNamed(a) // with any ANTIPHASE_SIMD, because the facts say what there is
	if err != nil {
		return err
	}
	defer d.Close()
	facts := []fact{
		{"version", version()},
		{"go", runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH},
		{"device", d.Name()},
		{"cpus", fmt.Sprint(runtime.NumCPU())},
		{"cpu precision", cpu.BestPrecision().String() + " unless --precision says otherwise (fp32, bf16, int8)"},
		{"matrix product", fmt.Sprintf("%.0f GFLOP/s (%s)", train.MeasurePeak(d)/1e9, d.Types().Act)},
		{"peak", peakFact(a, d)},
	}
	facts = append(facts, fact{"instructions", strings.Join(cpu.Features(), " ") + "; the first is used, " + simdEnv + " picks another"})
	facts = append(facts, fact{"cuda", cudaFact()})
	if asJSON {
		out := map[string][]string{}
		for _, f := range facts {
			out[f.Key] = append(out[f.Key], f.Value)
		}
		return a.json(out)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		fmt.Fprintf(w, "%s\t%s\n", f.Key, f.Value)
	}
	return w.Flush()
}

// peakFact is the rate of multiply-adds on registers with the instruction set in use, the best of a few runs.
func peakFact(a *app, d device.Device) string {
	loop := newBenchConfig(a, d).Product
	if loop.Run == nil {
		return "not known of this device"
	}
	var best float64
	for range 5 {
		x, err := loop.Run()
		if err != nil {
			return err.Error()
		}
		best = max(best, x)
	}
	return fmt.Sprintf("%.0f GFLOP/s (%s)", best*1e3, loop.Name)
}

// cudaFact names the first GPU, or says why there is none.
func cudaFact() string {
	d, err := cuda.Open(0, cuda.Options{})
	if err != nil {
		return err.Error()
	}
	defer d.Close()
	return d.Name()
}
