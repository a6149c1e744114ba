package experiment

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/internal/kill"
)

// killDir names the folder when the test binary runs as the process to be killed.
const killDir = "ANTIPHASE_TEST_EXPERIMENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		d := cpu.New(cpu.Options{Threads: 1})
		if _, err := Work(context.Background(), nanoSpec(120), options(dir, d)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	kill.Main(m)
}

// nanoSpec is an experiment of a few seconds: it tunes, probes and judges.
func nanoSpec(steps int) *Spec {
	s := &Spec{Name: "nano", Sizes: []string{"nano"}, Archs: []string{"transformer", "diff"},
		LRs: []float64{1e-3, 3e-3}, Seeds: []uint64{1, 2},
		TuneSeeds: 1, Steps: steps, EvalSeed: 20, Tasks: []Ask{"lm pieces=8",
			"outliers"}, Probes: []Ask{"outliers tokens=64"}, Every: steps / 4,
		Set: []string{fmt.Sprintf("train.save_every=%d", max(steps/6, 1))}} // so that kills find checkpoints
	if err := s.Resolve(); err != nil {
		panic(err)
	}
	return s
}

func options(dir string, d ...device.Device) Options {
	return Options{Dir: dir, Devices: d, Kind: "cpu", Keep: KeepNone, Say: func(string, ...any) {},
		Progress: func(Progress) {}}
}

// said collects what an experiment says.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// with counts the lines that contain a text.
func (s *said) with(text string) (n int) {
	for _, line := range s.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func oneThread(t *testing.T) device.Device {
	d := cpu.New(cpu.Options{Threads: 1})
	t.Cleanup(func() { d.Close() })
	return d
}

// withoutTimings are the rows that do not depend on the machine's load, as bytes.
func withoutTimings(t *testing.T, rows []Row) []byte {
	t.Helper()
	b, err := Encode(slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Timing }))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
