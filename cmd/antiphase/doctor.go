package main

import (
	"fmt"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

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
		{"machine", device.MachineOf(d)},
		{"cpus", fmt.Sprint(runtime.NumCPU())},
		{"cpu precision", cpu.BestPrecision().String() + " unless --precision says otherwise (fp32, bf16, int8)"},
		{"matrix product", fmt.Sprintf("%s (%s)", rateText(train.MeasurePeak(d)), d.Types().Act)},
		{"peak", peakFact(a, d)},
	}
	facts = append(facts, fact{"instructions", strings.Join(cpu.Features(), " ") + "; the first is used, " + simdEnv +
		" picks another"})
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

// peakFact is the rate of multiply-adds on registers with the instruction set in use: the best of short runs, because
// the products it is compared with are short too, and other processes disturb long ones.
func peakFact(a *app, d device.Device) string {
	c, ok := d.(*cpu.Device)
	if !ok {
		return "not known of this device"
	}
	name, best := cpu.PeakOf(c.Precision()), 0.0
	for range 20 {
		x, err := cpu.Peak(name, workers(a), 5*time.Millisecond)
		if err != nil {
			return err.Error()
		}
		best = max(best, x)
	}
	return fmt.Sprintf("%s (%s in registers, %d threads)", rateText(best), name, workers(a))
}

// rateText is a rate with three digits, of which slow machines need some after the point.
func rateText(x float64) string {
	digits := 0
	for y := x / 1e9; y < 100 && digits < 3; y *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f GFLOP/s", digits, x/1e9)
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
