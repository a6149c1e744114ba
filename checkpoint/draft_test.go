package checkpoint

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// Two processes write one checkpoint; until it is committed there is none, and what an uncommitted one leaves is
// cleared.
func TestDraftOfTwo(t *testing.T) {
	mem := vfstest.NewMem()
	first := open(t, mem, Options{})
	second := open(t, mem, Options{ReadOnly: true})
	for _, commit := range []bool{false, true} {
		d, err := first.Begin(7)
		if err != nil {
			t.Fatal(err)
		}
		other, err := second.Join(7, d.Name())
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.Write([]File{bytesFile("a", []byte("one"))})
		if err != nil {
			t.Fatal(err)
		}
		b, err := other.Write([]File{bytesFile("b", []byte("two"))})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.Latest(nil); err == nil {
			t.Fatal("an uncommitted draft counts")
		}
		if !commit {
			first = open(t, mem, Options{}) // the process died and was started again
			if strings.Contains(mem.String(), "tmp-") {
				t.Errorf("left over:\n%s", mem)
			}
			continue
		}
		if err := d.Commit(append(b, a...)); err != nil {
			t.Fatal(err)
		}
		c, err := second.Latest(nil)
		if err != nil || c.Step != 7 || len(c.Manifest.Files) != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

// What another process says it wrote must be there, once, and as long as it says.
func TestDraftRefuses(t *testing.T) {
	s := open(t, vfstest.NewMem(), Options{})
	for name, change := range map[string]func(e []Entry) []Entry{
		"two processes wrote":     func(e []Entry) []Entry { return append(e, e[0]) },
		"must see one folder":     func(e []Entry) []Entry { return append(e, Entry{Name: "elsewhere", Bytes: 1}) },
		"3 bytes, its writer say": func(e []Entry) []Entry { e[0].Bytes = 4; return e },
	} {
		d, err := s.Begin(3)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Write([]File{bytesFile("a", []byte("one"))})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(change(e)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v; want %q", err, name)
		}
		if _, err := s.Latest(nil); err == nil {
			t.Errorf("%s: it was committed", name)
		}
	}
	for _, name := range []string{"step-00000003", "../step-00000003.tmp-0123456789abcdef",
		"step-00000004.tmp-0123456789abcdef", "step-00000003.old-0123456789abcdef"} {
		if _, err := s.Join(3, name); err == nil {
			t.Errorf("joined %q", name)
		}
	}
}

// What goes wrong in a draft is told with its step, whichever process it goes wrong in. After the rename the checkpoint
// counts, whatever part of tidying up fails: that is ErrCommitted, as of Save.
func TestDraftFails(t *testing.T) {
	broken := errors.New("broken")
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	d, err := s.Begin(7)
	if err != nil {
		t.Fatal(err)
	}
	other, err := open(t, mem, Options{ReadOnly: true}).Join(7, d.Name())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Draft{d, other} {
		_, err := x.Write([]File{{"a", func(io.Writer) error { return broken }}})
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "checkpoint: save step 7: write a: ") {
			t.Errorf("%v", err)
		}
	}
	for _, kind := range []string{"latest", "old", "pruned"} {
		mem := vfstest.NewMem()
		s := open(t, mem, Options{KeepLast: 1})
		save(t, s, 3, "first")
		if kind == "old" {
			save(t, s, 7, "second")
		}
		s.fs = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			name := filepath.Base(op.Path)
			if kind == "latest" && strings.HasPrefix(name, "latest") || kind == "old" && op.Kind == "remove" &&
				strings.Contains(op.Path, ".old-") ||
				kind == "pruned" && op.Kind == "rename" && strings.HasPrefix(name, "step-00000003") {
				return syscall.EIO
			}
			return nil
		}}
		d, err := s.Begin(7)
		if err != nil {
			t.Fatal(err)
		}
		e, err := d.Write(state(7, "new"))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(e); !errors.Is(err, ErrCommitted) || !errors.Is(err, syscall.EIO) ||
			!strings.Contains(err.Error(), "step 7") {
			t.Errorf("%s: %v", kind, err)
		}
		if c, err := readOnly(mem).Latest(nil); err != nil || identity(t, mem, c, "new") != "7/new" {
			t.Errorf("%s: %+v, %v", kind, c, err)
		}
	}
}
