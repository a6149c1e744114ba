//go:build unix

package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"antiphase/device/cpu"
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
	home, err := os.MkdirTemp("", "antiphase-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv(homeEnv, home) // a peak that is measured once
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// children are what else the test binary may run as, by the variable that asks for it.
var children = map[string]func(spec string) error{}

// victim trains until it is done or killed.
func victim(dir string) {
	d := cpu.New(cpu.Options{Threads: 1})
	if _, err := Run(context.Background(), nano(&testing.B{}, "diff", killSets...), Options{Dir: dir, Device: d}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

var killSets = []string{"train.steps=400", "train.save_every=1"}

// kill -9 at random moments of training and saving: every restart resumes, and the end is the same to the byte.
func TestKill(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 5
	}
	whole, dir := t.TempDir(), t.TempDir()
	mustRun(t, nano(t, "diff", killSets...), options(t, whole))
	g := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	killed := 0
	for killed < kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d kills: %v", killed, err)
			}
			t.Logf("finished after %d kills; starting over", killed)
			if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Duration(20+g.IntN(200)) * time.Millisecond):
			_ = cmd.Process.Kill()
			<-done
			killed++
		}
	}
	mustRun(t, nano(t, "diff", killSets...), options(t, dir))
	sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000400")), files(t, filepath.Join(whole, "checkpoints", "step-00000400")))
}
