package dist

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// An old address in the folder, with no listener or a foreign one, does not keep ranks from meeting.
func TestStaleFolder(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	stranger, err := listen("127.0.0.1:0", []byte("of another job"), 2, local(""))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.close()
	for _, addr := range []string{stranger.addr(), freePort(t)} {
		if err := (&folder{dir: dir}).publish(addr, []byte("old")); err != nil {
			t.Fatal(err)
		}
		late := make(chan error, 1)
		go func() {
			j, err := Join(context.Background(), rank(1, 2), local("file://"+dir))
			if err == nil {
				err = j.Close()
			}
			late <- err
		}()
		time.Sleep(200 * time.Millisecond)
		j, err := Join(context.Background(), rank(0, 2), local("file://"+dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Close(), <-late); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir)); err != nil || !info.IsDir() {
		t.Error(err)
	}
}
