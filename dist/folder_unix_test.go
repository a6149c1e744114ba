//go:build unix

package dist

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What others may have put into a shared folder is not believed, and does not block.
func TestPlantedCards(t *testing.T) {
	for name, plant := range map[string]func(path string) error{
		"readable by all": func(path string) error {
			return os.WriteFile(path, []byte(`{"addr":"127.0.0.1:1","secret":"eA=="}`), 0o644)
		},
		"a link":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		if err := plant(filepath.Join(dir, cardName)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, _, again, err := (&folder{dir: dir}).find()
			if !again {
				err = errors.New("not looked at again")
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), cardName) || name != "a link" &&
				!strings.Contains(err.Error(), "is not a file of this user alone") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: still reading", name)
		}
	}
}

// A job leaves no private folder, and takes away those that killed jobs left long ago, but nothing else.
func TestPrivateFolderGoes(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	of := func(job string) string {
		dir, err := privateFolder(Launch{Source: "openmpi", World: 2, LocalSize: 2, Job: job})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir := of("7")
	notes := filepath.Join(filepath.Dir(dir), "notes")
	for path, file := range map[string]string{of("killed"): cardName, of("used by somebody"): "thesis",
		notes: cardName} {
		err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, file), nil, 0o600),
			os.Chtimes(path, time.Time{}, time.Now().Add(-2*leftover)))
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &folder{dir: dir, at: "127.0.0.1:0", own: true}
	if _, _, err := f.bind(); err != nil {
		t.Fatal(err)
	}
	if err := f.publish("127.0.0.1:1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := f.find(); err != nil {
		t.Error(err)
	}
	f.close()
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "*"))
	want := []string{filepath.Join(of("used by somebody"), "thesis"), filepath.Join(notes, cardName)}
	if slices.Sort(want); !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	if all, _ := os.ReadDir(filepath.Dir(dir)); len(all) != len(want) {
		t.Errorf("folders left: %v", all)
	}
}

// Rank 0 takes its card away also if the job fails: its process may end without Close.
func TestCardGoesWithTheJob(t *testing.T) {
	for name, end := range map[string]func(jobs []*Job){
		"rank 0 gives up": func(jobs []*Job) { jobs[0].Fail(errors.New("no room"), 4) },
		"rank 1 dies":     func(jobs []*Job) { _ = jobs[1].link.c.Close() },
	} {
		dir := t.TempDir()
		jobs, errs := joinAll(t, "file://"+dir, 2, nil)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		end(jobs)
		<-jobs[0].over
		if _, err := os.Stat(filepath.Join(dir, cardName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		for _, j := range jobs {
			j.shut()
		}
	}
}

// The private folder is refused where somebody else could have put it there.
func TestPrivateFolder(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	l := Launch{Source: "openmpi", World: 2, LocalSize: 2, Job: "7"}
	dir, err := privateFolder(l)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := privateFolder(l); again != dir {
		t.Errorf("%s, then %s", dir, again)
	}
	l.Job = "8"
	if other, _ := privateFolder(l); other == dir {
		t.Error("two jobs share a folder")
	}
	root := filepath.Dir(dir)
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := privateFolder(l); err == nil {
		t.Error("a folder that anybody may enter was taken")
	}
	if err := errors.Join(os.RemoveAll(root), os.WriteFile(root, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := privateFolder(l); err == nil ||
		!strings.Contains(err.Error(), root+" is not a folder of this user alone") {
		t.Errorf("a file in its place: %v", err)
	}
}

// Files that this user alone may use.
func TestPrivateModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o700: true, 0o640: false, 0o620: false,
		0o610: false, 0o604: false, 0o602: false, 0o601: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || private(info) != want {
			t.Errorf("%o: private %v, %v", mode, !want, err)
		}
	}
}
