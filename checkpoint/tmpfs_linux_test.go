package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"antiphase/internal/vfs"
)

// TestRealFullDisk saves on a tmpfs of every size in pages, from room for the old checkpoint alone to room for the new
// one.
func TestRealFullDisk(t *testing.T) {
	const page = 4096
	big := []File{
		bytesFile("model.safetensors", make([]byte, 3*page)),
		bytesFile("optimizer.safetensors", make([]byte, 2*page+1)),
		bytesFile("state.json", []byte("{}")),
	}
	var full, saved int
	for pages := 5; saved == 0; pages++ {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", pages*page)); err != nil {
			t.Skip("mounting a tmpfs is not permitted here:", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		s, err := Open(dir, Options{KeepLast: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Save(4, state(4, "old")); err != nil {
			t.Fatal(err)
		}
		err = s.Save(8, big)
		c, lerr := s.Latest(func(w string) { t.Error(w) })
		if lerr != nil {
			t.Fatalf("%d pages: %v", pages, lerr)
		}
		var space *SpaceError
		switch {
		case err == nil || errors.Is(err, ErrCommitted):
			saved++
			if c.Step != 8 {
				t.Errorf("%d pages: saved, found step %d", pages, c.Step)
			}
		case errors.As(err, &space):
			full++
			checkFull(t, s, c, space)
		default:
			t.Fatalf("%d pages: %v", pages, err)
		}
	}
	if full < 3 {
		t.Errorf("only %d sizes were too small", full)
	}
	t.Logf("%d sizes too small", full)
}

func checkFull(t *testing.T, s *Store, c *Checkpoint, space *SpaceError) {
	t.Helper()
	if identity(t, vfs.OS{}, c, "old") != "4/old" || space.Need != 5*4096+3 || space.Free >= space.Need+3*4096 {
		t.Errorf("found step %d; %v", c.Step, space)
	}
	entries, err := os.ReadDir(s.Dir())
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return leftover.MatchString(e.Name()) }) {
		t.Errorf("left behind %v, %v", entries, err)
	}
	// The run continues: a smaller state still fits.
	small := []File{{"state.json", func(w io.Writer) error { _, err := io.WriteString(w, "{}"); return err }}}
	if err := s.Save(9, small); err != nil && !errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrCommitted) {
		t.Error(err)
	}
}
