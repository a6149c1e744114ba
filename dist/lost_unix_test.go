//go:build unix

package dist_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one rank of a job without a launcher.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
}

// startRanks starts n processes that meet in a folder and may be silent for so long, and waits until all have joined.
func startRanks(t *testing.T, n int, silence time.Duration) (out []*process) {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"=wait", "MEET=file://"+dir, fmt.Sprintf("ANTIPHASE_RANK=%d", r),
			fmt.Sprintf("ANTIPHASE_WORLD_SIZE=%d", n), "SILENCE="+silence.String())
		cmd.Stderr = os.Stderr
		out = append(out, begin(t, cmd))
	}
	joined(t, out)
	return out
}

// begin starts a rank, which ends with the test.
func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{cmd, bufio.NewReader(pipe)}
}

// joined waits until all ranks say that they have met.
func joined(t *testing.T, ranks []*process) {
	t.Helper()
	for r, p := range ranks {
		if line, err := p.lines.ReadString('\n'); !strings.HasPrefix(line, "joined") {
			t.Fatalf("rank %d: %q, %v", r, line, err)
		}
	}
}

// A rank that is killed or stopped ends all others within the time-out, with code 75 and one line that names it.
func TestLostProcess(t *testing.T) {
	for _, c := range []struct {
		signal  syscall.Signal
		silence time.Duration
		want    string
	}{{syscall.SIGKILL, time.Minute, "has died"}, {syscall.SIGSTOP, 2 * time.Second, "has given no sign for"}} {
		for victim := range 2 {
			ranks := startRanks(t, 3, c.silence)
			began := time.Now()
			if err := ranks[victim].cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			for r, p := range ranks {
				if r == victim {
					continue
				}
				text, _ := io.ReadAll(p.lines)
				line := strings.TrimSpace(string(text))
				if err := p.cmd.Wait(); exitCode(err) != 75 || strings.Contains(line, "\n") || !strings.Contains(line,
					c.want) || !strings.Contains(line, fmt.Sprintf("a rank was lost: rank %d", victim)) {
					t.Errorf("%v of rank %d: rank %d: %v, %q", c.signal, victim, r, err, line)
				}
			}
			took := time.Since(began)
			if took > 29*time.Second { // a busy machine may be late; the default is 30 s
				t.Errorf("%v of rank %d: took %s", c.signal, victim, took)
			}
			t.Logf("%v of rank %d: the others left after %s", c.signal, victim, took.Round(time.Millisecond))
		}
	}
}

func exitCode(err error) int {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return e.ExitCode()
	}
	return -1
}

// Under mpirun ranks wait inside a collective that nothing can interrupt: SIGSTOP of the one they wait for ends
// them all the same.
func TestLostUnderMPI(t *testing.T) {
	for _, l := range mpiLaunchers(t) {
		cmd := l.start(t, 3, "hang")
		lines := bufio.NewScanner(begin(t, cmd).lines)
		victim := 0
		for joined := 0; joined < 3 && lines.Scan(); {
			var r, pid int
			if n, _ := fmt.Sscanf(lines.Text(), "joined %d pid %d", &r, &pid); n == 2 {
				if joined++; r == 2 {
					victim = pid
				}
			}
		}
		if victim == 0 {
			t.Fatalf("%s: the ranks did not join", l.name)
		}
		began := time.Now()
		if err := syscall.Kill(victim, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		said := 0
		for said < 2 && lines.Scan() {
			if strings.Contains(lines.Text(), "a rank was lost: rank 2") {
				said++
			}
		}
		took := time.Since(began)
		// A stopped process takes no gentler signal; some launchers wait for it.
		_ = syscall.Kill(victim, syscall.SIGKILL)
		_ = cmd.Wait()
		if said == 0 || took > 10*time.Second {
			t.Errorf("%s: %d ranks said that rank 2 was lost, after %s", l.name, said, took)
		}
		t.Logf("%s: %d lines after %s", l.name, said, took.Round(time.Millisecond))
	}
}
