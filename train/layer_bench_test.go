//go:build linux

package train

import (
	"context"
	"slices"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda/cudatest"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/internal/vfs"
	"antiphase/recipe"
)

// BenchmarkLayer takes steps of a plain run and of one whose only rank goes through the layer for several (buckets,
// background, ballot), in turns, and reports the median step and what the layer adds to it and to the fastest tenth.
func BenchmarkLayer(b *testing.B) {
	// What it adds does not grow with the model: the smallest step shows how long it is, a larger one what share.
	for size, set := range map[string][]string{"nano": {"train.batch=1", "train.micro_batch=1", "train.seq_len=16"},
		"tiny": {"train.batch=8", "train.micro_batch=8", "train.seq_len=128"}} {
		b.Run("cpu-"+size, func(b *testing.B) {
			d := cpu.New(cpu.Options{Threads: 1})
			b.Cleanup(func() { d.Close() })
			one := member{disttest.NewWorld(1, disttest.Options{}).Comm(0), newFacts(1)}
			benchLayer(b, d, one, size, set...)
		})
	}
	b.Run("cuda", func(b *testing.B) {
		d := cudatest.Open(b)
		l := dist.Launch{Source: "flags", World: 1, LocalSize: 1}
		job, err := dist.Join(b.Context(), l, dist.Options{Rendezvous: "file://" + b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		comm, err := dist.NCCL(job, d)
		if err != nil {
			b.Fatal(err)
		}
		benchLayer(b, d, jobRanks{job.Watch(comm), job}, "160m", "train.batch=16", "train.micro_batch=16")
		if err := comm.Close(); err != nil {
			b.Error(err)
		}
		if err := job.Close(); err != nil {
			b.Error(err)
		}
	})
}

func benchLayer(b *testing.B, d device.Device, one Ranks, size string, set ...string) {
	r, err := recipe.Named(size, "diff")
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range append(set, "data.sources=synthetic:docs=500", "tokenizer.path=bytes", "train.steps=1000000",
		"train.log_every=1000000") {
		if err := r.SetPair(s); err != nil {
			b.Fatal(err)
		}
	}
	if r, err = r.Complete(); err != nil {
		b.Fatal(err)
	}
	var runs [2]*run
	for i, ranks := range []Ranks{nil, one} {
		opt := Options{Dir: b.TempDir(), Device: d, Ranks: ranks, Say: func(string, ...any) {}, fs: vfs.OS{}}
		if runs[i], err = newRun(context.Background(), r, &opt); err != nil {
			b.Fatal(err)
		}
		defer runs[i].close()
		for range 4 { // memory, kernels and the recording
			if err := runs[i].step(); err != nil {
				b.Fatal(err)
			}
		}
	}
	var took [2][]float64
	for n := 0; b.Loop(); n++ {
		for k := range runs {
			i := (k + n) % 2 // either one first
			began := time.Now()
			if err := runs[i].step(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began).Seconds())
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	cost := func(at int) float64 { return 100 * (took[1][at]/took[0][at] - 1) }
	b.ReportMetric(1e3*took[0][len(took[0])/2], "ms-plain")
	b.ReportMetric(cost(len(took[0])/2), "%cost")
	b.ReportMetric(1e6*(took[1][len(took[1])/2]-took[0][len(took[0])/2]), "µs-cost")
	b.ReportMetric(cost(len(took[0])/10), "%cost-fast") // of the fastest tenth: other processes disturb these least
}
