//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mpirun starts this binary as n ranks of a run that would take a minute, and waits until it has saved something. A
// rank that is silent for timeout is lost.
func mpirun(t *testing.T, n int, dir, timeout string) (*exec.Cmd, *transcript) {
	t.Helper()
	cmd, out := startRanks(t, n, dir, timeout, "--data", "synthetic:docs=60")
	untilRanks(t, out, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
		return len(found) > 0
	})
	return cmd, out
}

// startRanks starts the ranks.
func startRanks(t *testing.T, n int, dir, timeout string, more ...string) (*exec.Cmd, *transcript) {
	t.Helper()
	args := []string{"--allow-run-as-root", "--oversubscribe", "-np", fmt.Sprint(n)}
	path, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		if path, err = exec.LookPath("mpirun.mpich"); err != nil {
			t.Skip("no MPI launcher is installed (Debian: openmpi-bin or mpich)")
		}
		args = args[2:]
	}
	args = append(args, os.Args[0], "train", "--size", "nano", "--device", "cpu", "--dir", dir,
		"--peer-timeout", timeout, "--quiet")
	args = append(args, more...)
	args = append(args, "train.batch=12", "train.micro_batch=2", "train.steps=100000", "train.save_every=5",
		"train.eval_every=0")
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), asAntiphase+"=1")
	var out transcript
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, &out
}

// SIGTERM to any one rank: all finish the step, save and leave with 75; the same command continues.
func TestRanksTerminate(t *testing.T) {
	t.Parallel()
	for rank := range 2 {
		dir := t.TempDir()
		cmd, out := mpirun(t, 2, dir, "30s") // nothing is lost here, however busy the machine is
		if err := syscall.Kill(pidOf(t, dir, rank), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitTryAgain || strings.Count(out.String(),
			"run the same command again") != 1 {
			t.Errorf("rank %d: %v after %s\n%s", rank, err, time.Since(began), out.String())
		}
	}
}

// SIGTERM to any one rank while rank 0 prepares the data: all leave with 75, at once.
func TestRanksTerminatePreparing(t *testing.T) {
	t.Parallel()
	for rank := range 2 {
		dir := t.TempDir()
		cmd, out := startRanks(t, 2, dir, "30s", "--data", "synthetic:docs=9000000")
		untilRanks(t, out, func() bool {
			found, _ := filepath.Glob(filepath.Join(dir, "data.tmp-*"))
			return len(found) > 0
		})
		if err := syscall.Kill(pidOf(t, dir, rank), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		limit := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		limit.Stop()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitTryAgain ||
			!strings.Contains(out.String(), "while preparing") {
			t.Errorf("SIGTERM to rank %d: %v\n%s", rank, err, out.String())
		}
	}
}

// A rank that is killed or stopped ends the others, which say so in one line each.
func TestRanksLost(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		dir := t.TempDir()
		cmd, out := mpirun(t, 2, dir, "2s")
		pid := pidOf(t, dir, 1)
		began := time.Now()
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		// some launchers wait for a stopped process
		time.AfterFunc(15*time.Second, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		for range 200 {
			if time.Sleep(50 * time.Millisecond); strings.Contains(out.String(), "a rank was lost") {
				break
			}
		}
		took := time.Since(began)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_ = cmd.Wait()
		text := out.String()
		killedByLauncher := sig == syscall.SIGKILL && strings.Contains(text, "signal 9")
		if !killedByLauncher && (!strings.Contains(text, "a rank was lost: rank 1") || !strings.Contains(text,
			"is saved, run the same command again")) || took > 10*time.Second {
			t.Errorf("%v: after %s\n%s", sig, took, text)
		}
		t.Logf("%v: after %s", sig, took.Round(time.Millisecond))
	}
}

// launched starts this binary as n ranks of any verb.
func launched(t *testing.T, n int, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Skip("no MPI launcher is installed (Debian: openmpi-bin)")
	}
	cmd := exec.Command(path, append([]string{"--allow-run-as-root", "--oversubscribe", "-np", fmt.Sprint(n),
		os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), asAntiphase+"=1")
	return cmd
}

// divided is launched for verbs whose ranks exchange only words: where there is no MPI, a shell starts them.
func divided(t *testing.T, n int, args ...string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("mpirun.openmpi"); err == nil {
		return launched(t, n, args...)
	}
	const script = `n=$1; shift; r=0; all=
while [ $r -lt $n ]; do RANK=$r LOCAL_RANK=$r "$@" & all="$all $!"; r=$((r+1)); done
code=0; for p in $all; do wait $p || code=$?; done; exit $code`
	cmd := exec.Command("sh", append([]string{"-c", script, "sh", fmt.Sprint(n), os.Args[0]}, args...)...)
	cmd.Env = append(os.Environ(), asAntiphase+"=1", fmt.Sprintf("WORLD_SIZE=%d", n),
		fmt.Sprintf("LOCAL_WORLD_SIZE=%d", n),
		"ANTIPHASE_RENDEZVOUS=file://"+t.TempDir())
	return cmd
}

// printed runs a command that must succeed.
func printed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out.String(), said.String())
	}
	return out.String()
}

// Ranks divide the questions of eval among them, and the result is that of one process.
func TestRanksDivideQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	printed(t, self("train", "--size", "nano", "--data", "synthetic:docs=60", "--dir", in("m"), "-q", "train.steps=4"))
	asks := []string{"eval", "-m", in("m"), "--tasks", "lm,boolq,outliers", "--limit", "11", "--json", "-q",
		"--device", "cpu", "-o"}
	want := printed(t, self(append(asks, in("one"))...))
	got := printed(t, divided(t, 3, append(asks, in("three"))...))
	scores := func(text string) string {
		var v struct{ Results json.RawMessage }
		if err := json.Unmarshal([]byte(text), &v); err != nil || len(v.Results) == 0 {
			t.Fatalf("%v in %s", err, text)
		}
		return string(v.Results)
	}
	if scores(got) != scores(want) {
		t.Errorf("three ranks:\n%s\none process:\n%s", scores(got), scores(want))
	}
	asked := 0 // ranks that asked something
	files, _ := filepath.Glob(in("three/rows-*.jsonl"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), `"answer"`) {
			asked++
		}
	}
	if asked != 3 {
		t.Errorf("%d of 3 ranks asked something", asked)
	}
	out, err := divided(t, 2, asks[:len(asks)-1]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--output: missing; 2 ranks combine their answers in a store") {
		t.Errorf("without a store: %v\n%s", err, out)
	}
}

// killsRank starts ranks of compare and kills one when something is saved. It is false if all had ended well before.
func killsRank(t *testing.T, cmd *exec.Cmd, dir string) bool {
	t.Helper()
	var out transcript
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	pid := 0
	untilRanks(t, &out, func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "runs/*/checkpoints/step-*"))
		pid = findRank(t, dir, 1)
		return len(found) > 0 && pid > 0 || len(done) > 0
	})
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return <-done != nil
}

// Ranks divide the runs of compare among them; a rank that is killed ends the others, and the same command continues to
// the rows that one process writes.
func TestRanksDivideRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	steps := "40"
	if testing.Short() {
		steps = "16"
	}
	args := func(name string) []string {
		return []string{"compare", "--size", "nano", "--data", "synthetic:docs=60", "--lr", "1e-3,2e-3", "--seeds", "2",
			"--steps", steps, "--arch", "transformer,diff", "--name", "x", "--task", "lm", "--device", "cpu", "-q",
			"--set", "train.save_every=2", "--dir", in(name)}
	}
	printed(t, self(args("one")...))
	for !killsRank(t, divided(t, 3, args("three")...), in("three")) { // the runs had ended before
		if err := os.RemoveAll(in("three")); err != nil {
			t.Fatal(err)
		}
	}
	printed(t, divided(t, 3, args("three")...))
	rows := func(name string) (out []string) {
		b, err := os.ReadFile(filepath.Join(in(name), "rows.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var r struct {
				Run, Measure string
				Value        float64
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(r.Measure, "second") {
				out = append(out, fmt.Sprint(r))
			}
		}
		return out
	}
	if got, want := rows("three"), rows("one"); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%d rows of three ranks, %d of one, not the same", len(got), len(want))
	}
}

// Ranks hold one model together: greedy text is one process's, and so is what the server answers. A rank that is lost
// ends the server.
func TestRanksHoldAModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := filepath.Join(dir, "m")
	printed(t, self("train", "--size", "nano", "--data", "synthetic:docs=60", "--dir", run, "-q", "train.steps=30",
		"--device", "cpu"))
	ask := []string{"generate", "-m", run, "-p", "The magic", "--temperature", "0", "--seed", "1", "-n", "40", "--json",
		"--device", "cpu", "--precision", "fp32", "-q"}
	want := printed(t, self(ask...))
	if got := printed(t, launched(t, 2, ask...)); got != want {
		t.Errorf("two ranks: %s\none process: %s", got, want)
	}
	out, err := launched(t, 3, ask...).CombinedOutput()
	if err == nil || !strings.Contains(string(out),
		"tp=3 does not divide heads (pairs, whose two maps stay on one rank) = 2; tp may be [1 2]") {
		t.Errorf("three ranks and two pairs of heads: %v\n%s", err, out)
	}
	addr := "127.0.0.1:" + freePort(t)
	server := launched(t, 2, "serve", "-m", run, "--listen", addr, "--device", "cpu", "--precision", "fp32", "-q")
	var said strings.Builder
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	var line struct{ Text string }
	if err := json.Unmarshal([]byte(want), &line); err != nil {
		t.Fatal(err)
	}
	if got := served(t, addr, `{"model":"m","prompt":"The magic","temperature":0,"max_tokens":40}`); got != line.Text {
		t.Errorf("two ranks serve %q, one process writes %q", got, line.Text)
	}
	r, err := http.Post("http://"+addr+"/v1/embeddings", "application/json",
		strings.NewReader(`{"model":"m","input":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusNotImplemented {
		t.Errorf("embeddings of a model in parts: status %d", r.StatusCode)
	}
	if err := syscall.Kill(pidOf(t, run, 1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if server.Wait() == nil || time.Since(began) > 10*time.Second {
		t.Errorf("the server went on for %s without its other half", time.Since(began))
	}
}

// served asks a server that may still be loading.
func served(t *testing.T, addr, body string) string {
	t.Helper()
	var last string
	for range 200 {
		r, err := http.Post("http://"+addr+"/v1/completions", "application/json", strings.NewReader(body))
		if err == nil {
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			var v struct{ Choices []struct{ Text string } }
			if last = string(b); r.StatusCode == http.StatusOK && json.Unmarshal(b, &v) == nil && len(v.Choices) == 1 {
				return v.Choices[0].Text
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no answer: %s", last)
	return ""
}
