//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// transcript is what processes write, which a test reads meanwhile.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// untilRanks waits until the ranks have come this far.
func untilRanks(t *testing.T, out *transcript, there func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if there() {
			return
		}
	}
	t.Fatalf("the ranks did not come so far\n%s", out.String())
}

// pidOf is the process of a rank, which must be there.
func pidOf(t *testing.T, dir string, rank int) int {
	t.Helper()
	pid := findRank(t, dir, rank)
	if pid == 0 {
		t.Fatalf("no process of rank %d", rank)
	}
	return pid
}

// findRank finds the process of a rank by its environment; 0 if there is none.
func findRank(t *testing.T, dir string, rank int) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		args := strings.Split(string(line), "\x00")
		if args[0] == os.Args[0] && strings.Contains(string(line), dir) {
			for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"} {
				if strings.Contains("\x00"+string(env), fmt.Sprintf("\x00%s=%d\x00", name, rank)) {
					var pid int
					_, _ = fmt.Sscan(filepath.Base(filepath.Dir(path)), &pid)
					return pid
				}
			}
		}
	}
	if len(all) == 0 {
		t.Skip("there is no /proc here to find a process of a rank in")
	}
	return 0
}
