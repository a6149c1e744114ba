package hostmem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAvailable: there is some memory, and no more than the machine has.
func TestAvailable(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Skip(err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	if n := Available(); n < 1<<20 || n > total {
		t.Errorf("%d bytes are available, the machine has %d", n, total)
	}
}

// TestGroup takes the tightest group on the way up.
func TestGroup(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("a/memory.max", "1000\n")
	put("a/memory.current", "300\n")
	put("a/b/memory.max", "max\n")
	put("a/b/memory.current", "100\n")
	if n := climb(root, "/a/b", "memory.max", "memory.current"); n != 700 {
		t.Errorf("%d bytes are left, want 700", n)
	}
	put("a/b/memory.max", "50")
	if n := climb(root, "/a/b", "memory.max", "memory.current"); n != 0 {
		t.Errorf("%d bytes are left in a group over its limit", n)
	}
	if n := climb(root, "/none", "memory.max", "memory.current"); n != Unknown {
		t.Errorf("%d bytes are left where no group says so", n)
	}
}

// The machine's free memory in bytes, as /proc/meminfo has it in kB, and what an address-space limit leaves.
func TestUnits(t *testing.T) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Skip(err)
	}
	var kb int64
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kb); err == nil {
			break
		}
	}
	if got := float64(machine()) / 1024 / float64(kb); got < 0.7 || got > 1.3 { // others allocate meanwhile
		t.Errorf("%g times what the kernel says", got)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &old); err != nil || old.Cur != unix.RLIM_INFINITY {
		t.Skip("the address space is limited already")
	}
	if got := space(); got != Unknown {
		t.Errorf("%d bytes are left without a limit", got)
	}
	const limit = 1 << 46
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		t.Skip(err)
	}
	got := space()
	if err := unix.Setrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	b, _ = os.ReadFile("/proc/self/statm")
	var pages int64
	if _, err := fmt.Sscan(string(b), &pages); err != nil {
		t.Fatal(err)
	}
	if want := limit - pages*int64(os.Getpagesize()) - 512<<20; got < want-1<<28 || got > want+1<<28 {
		t.Errorf("%d bytes are left of %d, want about %d", got, int64(limit), want)
	}
}

// The limits of this process's own groups are found below the root, in both versions.
func TestGroupsOfThisProcess(t *testing.T) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		root, limit, usage := t.TempDir(), "memory.max", "memory.current"
		dir := filepath.Join(root, part[2])
		switch {
		case part[0] == "0":
		case slices.Contains(strings.Split(part[1], ","), "memory"):
			dir, limit, usage = filepath.Join(root, "memory", part[2]), "memory.limit_in_bytes", "memory.usage_in_bytes"
		default:
			continue
		}
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, limit), []byte("5000\n"), 0o644), os.WriteFile(filepath.Join(dir, usage), []byte("1200\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		if got := group(root); got != 3800 {
			t.Errorf("%s: %d bytes are left, want 3800", line, got)
		}
		if got := least(root); got != 3800 { // less than the machine has
			t.Errorf("%s: %d bytes are available, want 3800", line, got)
		}
	}
	if got := group(t.TempDir()); got != Unknown {
		t.Errorf("%d bytes are left where no group says so", got)
	}
}
