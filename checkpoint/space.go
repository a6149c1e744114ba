package checkpoint

import (
	"errors"
	"fmt"
	"io"

	"antiphase/internal/vfs"
)

// ErrNoSpace means that the volume has too little space for a checkpoint. Nothing was lost: training can continue and
// save later.
var ErrNoSpace = errors.New("no space left")

// SpaceError is an ErrNoSpace with the numbers.
type SpaceError struct {
	Path string // the folder of checkpoints
	Need int64  // bytes of the whole checkpoint
	Free int64  // bytes free without the partial save; -1 if unknown
	Err  error  // the failed operation
}

// Error implements error.
func (e *SpaceError) Error() string {
	s := fmt.Sprintf("%v in %s: a checkpoint needs %d bytes, %d are free", ErrNoSpace, e.Path, e.Need, e.Free)
	if e.Free < 0 {
		s = fmt.Sprintf("%v in %s: a checkpoint needs %d bytes", ErrNoSpace, e.Path, e.Need)
	}
	return s + ": " + e.Err.Error()
}

// Is makes errors.Is(err, ErrNoSpace) true.
func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// Unwrap returns the failed operation.
func (e *SpaceError) Unwrap() error { return e.Err }

// CheckSpace returns an ErrNoSpace error if there is no room for n more checkpoints of this many bytes each, and says
// how many would fit. A run calls it before it starts.
func (s *Store) CheckSpace(n int, bytes int64) error {
	free, err := s.fs.Free(s.dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if fit := free / max(bytes, 1); fit < int64(n) {
		return fmt.Errorf("checkpoint: %w in %s: %d checkpoints of %d bytes are to be written, %d bytes are free, "+
			"room for %d of them",
			ErrNoSpace, s.dir, n, bytes, free, fit)
	}
	return nil
}

// explain turns a full disk into a SpaceError and returns other errors unchanged.
func explain(s *Store, err error, need int64) error {
	if !vfs.IsNoSpace(err) {
		return err
	}
	free, ferr := s.fs.Free(s.dir)
	if ferr != nil {
		free = -1
	}
	return &SpaceError{Path: s.dir, Need: need, Free: free, Err: err}
}

// measure counts the bytes of files, up to the first that cannot be written.
func measure(files []File) int64 {
	var need counter
	for _, f := range files {
		if f.Write(&need) != nil {
			break
		}
	}
	return int64(need)
}

// counter is a writer that only counts.
type counter int64

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
