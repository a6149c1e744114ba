package vfstest

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, fsys vfs.FS, path, text string, sync bool) {
	t.Helper()
	f, err := fsys.Create(path)
	must(t, err)
	_, err = io.WriteString(f, text)
	must(t, err)
	if sync {
		must(t, f.Sync())
	}
	must(t, f.Close())
}

// TestCrashForgets: without luck, only synced bytes under synced names are left.
func TestCrashForgets(t *testing.T) {
	m := NewMem()
	must(t, m.Mkdir("d"), m.SyncDir("."))
	write(t, m, "d/synced", "one", true)
	write(t, m, "d/bytes-lost", "two", false)
	must(t, m.SyncDir("d"))
	write(t, m, "d/name-lost", "three", true)
	write(t, m, "d/synced", "four", false)
	must(t, m.Mkdir("lost"))
	if got, want := m.Crash(nil).String(), "d/(bytes-lost= synced=one)"; got != want {
		t.Fatalf("left %q, want %q", got, want)
	}
	must(t, m.Rename("d/synced", "d/moved"))
	if got, want := m.Crash(nil).String(), "d/(bytes-lost= synced=one)"; got != want {
		t.Fatalf("after a rename left %q, want %q", got, want)
	}
	must(t, m.SyncDir("d"))
	if got, want := m.Crash(nil).String(), "d/(bytes-lost= moved=one name-lost=three)"; got != want {
		t.Fatalf("after its sync left %q, want %q", got, want)
	}
	if got, want := m.Clone().String(), "d/(bytes-lost=two moved=four name-lost=three) lost/()"; got != want {
		t.Fatalf("clone has %q, want %q", got, want)
	}
}

// TestCrashOutcomes: with luck every combination turns up, a rename is never split and never comes before what it
// depends on.
func TestCrashOutcomes(t *testing.T) {
	m := NewMem()
	write(t, m, "a", "1", true)
	must(t, m.SyncDir("."))
	write(t, m, "b", "2", true)
	must(t, m.Rename("b", "a"))
	write(t, m, "c", "3", true)
	seen := map[string]bool{}
	for seed := range uint64(200) {
		seen[m.Crash(rand.New(rand.NewPCG(seed, 0))).String()] = true
	}
	for _, want := range []string{"a=1", "a=1 b=2", "a=2", "a=1 c=3", "a=1 b=2 c=3", "a=2 c=3"} {
		if !seen[want] {
			t.Errorf("never left %q", want)
		}
		delete(seen, want)
	}
	if len(seen) > 0 {
		t.Errorf("left %v", seen)
	}
}

func TestUnsyncedBytes(t *testing.T) {
	m := NewMem()
	write(t, m, "a", strings.Repeat("x", 100), false)
	must(t, m.SyncDir("."))
	kinds := map[string]int{}
	for seed := range uint64(100) {
		got := strings.TrimPrefix(m.Crash(rand.New(rand.NewPCG(seed, 1))).String(), "a=")
		switch {
		case got == "":
			kinds["empty"]++
		case strings.Contains(got, "\x00"):
			kinds["zeros"]++
		case len(got) == 100:
			kinds["whole"]++
		default:
			kinds["cut"]++
		}
	}
	if len(kinds) != 4 {
		t.Errorf("outcomes %v, want all four kinds", kinds)
	}
}

func TestCapAndFaults(t *testing.T) {
	m := NewMem()
	m.Cap = 10
	f, err := m.Create("a")
	must(t, err)
	if n, err := f.Write(make([]byte, 12)); n != 10 || !vfs.IsNoSpace(err) {
		t.Errorf("wrote %d, %v", n, err)
	}
	must(t, m.Remove("a"))
	if n, _ := m.Free("."); n != 10 {
		t.Errorf("%d free after removal", n)
	}
	fault := &Faulty{FS: m, Hook: func(op Op) error {
		if op.Kind == "write" {
			return syscall.EIO
		}
		return nil
	}}
	g, err := fault.Create("b")
	must(t, err)
	if n, err := g.Write([]byte("abcd")); n != 2 || !errors.Is(err, syscall.EIO) {
		t.Errorf("failing write: %d, %v", n, err)
	}
	fault.Short = true
	if n, err := g.Write([]byte("abcd")); n != 2 || err != nil {
		t.Errorf("short write: %d, %v", n, err)
	}
	if fault.Count() != 3 {
		t.Errorf("%d operations seen, want 3", fault.Count())
	}
}
