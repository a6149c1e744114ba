package flock

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"antiphase/internal/quota"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// holdDir makes this test binary a process that locks a folder, says so and waits to be killed.
const holdDir = "FLOCK_TEST_HOLD"

func TestMain(m *testing.M) {
	dir := os.Getenv(holdDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	lock, err := Acquire(dir)
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString("held\n")
	time.Sleep(time.Minute)
	lock.Release()
}

func TestAcquireTwice(t *testing.T) {
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(dir)
	var held *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &held) || held.Owner.PID != os.Getpid() ||
		time.Since(held.Owner.Since) > time.Hour {
		t.Fatalf("second lock: %v", err)
	}
	host, _ := os.Hostname()
	if !strings.Contains(err.Error(), host) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%q does not name host %q and folder %q", err, host, dir)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	if err := a.Release(); err != nil {
		t.Fatalf("second release: %v", err)
	}
	b, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestDeath locks from another process, is refused with that process's number, kills it, and gets the lock.
func TestDeath(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, aerr := Acquire(dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	var held *HeldError
	if line != "held\n" || !errors.As(aerr, &held) || held.Owner.PID != cmd.Process.Pid {
		t.Fatalf("holder said %q, we got %v, want one naming process %d", line, aerr, cmd.Process.Pid)
	}
	lock, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after the holder's death: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableOwner(t *testing.T) {
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte(`{"pid":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("half-written owner: %v", err)
	}
	if _, err := Acquire(filepath.Join(dir, "none")); err == nil || errors.Is(err, ErrHeld) {
		t.Fatalf("missing folder: %v", err)
	}
}

// TestRemovedFile: without its file the folder is still locked, and a link in its place is not written through.
func TestRemovedFile(t *testing.T) {
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	switch err := os.Remove(filepath.Join(dir, Name)); {
	case err != nil && runtime.GOOS == "windows":
		t.Skip("an open file cannot be removed here:", err)
	case err != nil:
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("after its removal: %v", err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "thesis")
	if err := os.WriteFile(target, []byte("years of work"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	vfstest.Symlink(t, target, filepath.Join(dir, Name))
	if _, err := Acquire(dir); !errors.Is(err, vfs.ErrLink) {
		t.Errorf("a link: %v", err)
	}
	if b, _ := os.ReadFile(target); string(b) != "years of work" {
		t.Errorf("left %q", b)
	}
}

// The owner is the one that holds the lock, whatever an earlier one left in the file, and nobody's after its release.
func TestOwnerOverLongerName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := os.WriteFile(path, []byte(`{"pid":1,"host":"`+strings.Repeat("h", 300)+`"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Acquire(dir); !errors.As(err, &held) || held.Owner.PID != os.Getpid() || held.Dir != dir ||
		len(held.Owner.Host) == 300 || held.Owner.Since.IsZero() {
		t.Errorf("%v, %+v", err, held)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Errorf("after its release the file holds %q, %v", b, err)
	}
	if err := a.Release(); err != nil {
		t.Errorf("a second release: %v", err)
	}
	if b, err := Acquire(dir); err != nil {
		t.Error(err)
	} else if err := b.Release(); err != nil {
		t.Error(err)
	}
}

// A refused lock leaves nothing open, so that it cannot hold the folder's lock for the rest of the process: where the
// folder is held, and where only its file is.
func TestRefusedLocksAreClosed(t *testing.T) {
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		if _, err := Acquire(dir); !errors.Is(err, ErrHeld) {
			t.Error(err)
		}
	}
	quota.Files(t, "a held folder", refused)
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, Name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if taken, err := tryLock(f); err != nil || !taken {
		t.Fatal(taken, err)
	}
	quota.Files(t, "a held file", refused)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	quota.Files(t, "a lock", func() {
		b, err := Acquire(dir)
		if err != nil {
			t.Fatalf("after the file was released: %v", err)
		}
		if err := b.Release(); err != nil {
			t.Error(err)
		}
	})
}

// What a refused process is told: who holds the folder and since when, as far as that is known.
func TestHeldInWords(t *testing.T) {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for want, e := range map[string]*HeldError{
		"runs/a: folder is in use by process 42 on box since 2026-03-04T05:06:07Z": {"runs/a", Owner{42, "box", since}},
		"runs/a: folder is in use by another process":                              {"runs/a", Owner{}},
	} {
		if e.Error() != want || !errors.Is(e, ErrHeld) {
			t.Errorf("%q, want %q", e, want)
		}
	}
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	for name, text := range map[string]string{"a long host": `{"pid":7,"host":"` + strings.Repeat("h", 3000) + `"}`,
		"other things": `[1]`, "half": `{"pid":7,"host`} {
		if err := os.WriteFile(filepath.Join(dir, Name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var held *HeldError
		if _, err := Acquire(dir); !errors.As(err, &held) || (held.Owner.PID == 7) != (name == "a long host") ||
			held.Dir != dir {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
