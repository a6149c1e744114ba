package checkpoint

import (
	"errors"
	"fmt"
	"io"

	"antiphase/internal/vfs"
)

// ErrNoSpace says that the volume is too full for a checkpoint. Nothing was lost: training can go on and save later.
var ErrNoSpace = errors.New("no space left")

// SpaceError is an ErrNoSpace with the numbers.
type SpaceError struct {
	Path string // the folder of checkpoints
	Need int64  // bytes of the whole checkpoint
	Free int64  // bytes free, once what was half written is gone; -1 when the system does not say
	Err  error  // the failed operation, nil when only the numbers were compared
}

// Error implements error.
func (e *SpaceError) Error() string {
	s := fmt.Sprintf("%v in %s: a checkpoint needs %d bytes, %d are free", ErrNoSpace, e.Path, e.Need, e.Free)
	if e.Free < 0 {
		s = fmt.Sprintf("%v in %s: a checkpoint needs %d bytes", ErrNoSpace, e.Path, e.Need)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes errors.Is(err, ErrNoSpace) true.
func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// Unwrap returns the failed operation.
func (e *SpaceError) Unwrap() error { return e.Err }

// CheckSpace returns an ErrNoSpace error when fewer than need bytes are free for checkpoints. A run asks before it starts;
// Manifest.Bytes of an earlier checkpoint, or the sum of the tensors' sizes, is the number to ask with.
func (s *Store) CheckSpace(need int64) error {
	free, err := s.fs.Free(s.dir)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if free < need {
		return fmt.Errorf("checkpoint: %w", &SpaceError{Path: s.dir, Need: need, Free: free})
	}
	return nil
}

// explain turns a full disk into a SpaceError and leaves other errors alone.
func (s *Store) explain(err error, files []File) error {
	if !vfs.IsNoSpace(err) {
		return err
	}
	var need counter
	for _, f := range files {
		if werr := f.Write(&need); werr != nil {
			break // the number is then a lower bound; the full disk is the error to tell of
		}
	}
	free, ferr := s.fs.Free(s.dir)
	if ferr != nil {
		free = -1
	}
	return &SpaceError{Path: s.dir, Need: int64(need), Free: free, Err: err}
}

// counter is a writer that only counts.
type counter int64

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
