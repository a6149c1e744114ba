//go:build unix

package train

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/internal/kill"
)

// killDir names the run folder when the test binary runs as the process to be killed.
const killDir = "ANTIPHASE_TEST_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		victim(dir)
	}
	for name, child := range children {
		if spec := os.Getenv(name); spec != "" {
			if err := child(spec); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	kill.Main(m)
}

// children are what else the test binary may run as, by the variable that asks for it.
var children = map[string]func(spec string) error{}

// victim trains until it is done or killed.
func victim(dir string) {
	d := cpu.New(cpu.Options{Threads: 1})
	if _, err := Run(context.Background(), nano(&testing.B{}, "diff", killSets...),
		Options{Dir: dir, Device: d}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var killSets = []string{"train.steps=120", "train.save_every=1"}

// kill -9 at random moments of training and saving: every restart resumes, and the end is the same to the byte.
func TestKill(t *testing.T) {
	kills := 25
	switch {
	case os.Getenv("ANTIPHASE_TEST_LONG") != "":
		kills = 200
	case testing.Short():
		kills = 5
	}
	whole, dir := t.TempDir(), t.TempDir()
	mustRun(t, nano(t, "diff", killSets...), options(t, whole))
	last := func(dir string) map[string][]byte {
		return files(t, filepath.Join(dir, "checkpoints", "step-00000120"))
	}
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		return cmd
	}
	ended := 0
	kill.Moments{From: 20 * time.Millisecond, To: 220 * time.Millisecond}.Repeat(t, kills, start,
		func(_ int, finished bool) {
			if finished {
				ended++
				sameFiles(t, last(dir), last(whole))
				if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
					t.Fatal(err)
				}
			}
		})
	mustRun(t, nano(t, "diff", killSets...), options(t, dir))
	sameFiles(t, last(dir), last(whole))
	t.Logf("%d kills, %d runs that came to their end between them, each byte-equal", kills, ended+1)
}
