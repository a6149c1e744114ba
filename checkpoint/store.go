package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"antiphase/internal/vfs"
)

// folderName is the folder of checkpoints in a run folder; latestName is the file in it that names the newest.
const (
	folderName = "checkpoints"
	latestName = "latest"
)

// leftover matches what an interrupted Save may leave: .tmp- is useless, .old- is a checkpoint being replaced.
var leftover = regexp.MustCompile(`^(step-[0-9]{8,}|latest)\.(tmp|old)-[0-9a-f]{16}$`)

// setAside matches what Rewind renamed: .damaged- is useless, .aside- may be intact.
var setAside = regexp.MustCompile(`^step-([0-9]{8,})\.(damaged|aside)-[0-9a-f]{16}$`)

// Options configure a Store. The zero value keeps every checkpoint.
type Options struct {
	// FS is the file system; nil is the machine's own.
	FS vfs.FS
	// KeepLast is the number of newest checkpoints that a Save keeps; 0 keeps all.
	KeepLast int
	// KeepEvery also keeps every checkpoint whose step it divides; 0 keeps none for that.
	KeepEvery int
	// ReadOnly leaves the folder unchanged: nothing is created or removed and Save is refused. It is for readers that
	// do not hold the run's lock, because an apparent leftover may be a Save in progress.
	ReadOnly bool
}

// Store holds the checkpoints of one run folder. It is used by one goroutine at a time, and written by one process (see
// flock).
type Store struct {
	dir string // the folder of checkpoints
	opt Options
	fs  vfs.FS
}

// Open opens the checkpoints of the run folder dir, creates their folder, and removes leftovers of an interrupted Save.
func Open(dir string, opt Options) (*Store, error) {
	if opt.KeepLast < 0 || opt.KeepEvery < 0 {
		return nil, fmt.Errorf("checkpoint: keep last %d, keep every %d: neither may be negative", opt.KeepLast,
			opt.KeepEvery)
	}
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	s := &Store{dir: filepath.Join(dir, folderName), opt: opt, fs: opt.FS}
	if opt.ReadOnly {
		return s, nil
	}
	if err := vfs.MkdirAll(s.fs, s.dir); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if err := s.clean(); err != nil {
		return nil, fmt.Errorf("checkpoint: clean up %s: %w", s.dir, err)
	}
	return s, nil
}

// clean restores a checkpoint whose replacement was interrupted and deletes all other leftovers.
func (s *Store) clean() error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !leftover.MatchString(name) })
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		parts := leftover.FindStringSubmatch(name)
		path, whole := filepath.Join(s.dir, name), filepath.Join(s.dir, parts[1])
		if parts[2] == "old" {
			if err := s.settle(path, whole); err != nil {
				return err
			}
			continue
		}
		if err := vfs.RemoveAll(s.fs, path); err != nil {
			return err
		}
	}
	return s.fs.SyncDir(s.dir)
}

// settle finishes an interrupted replacement. The old checkpoint is deleted if the new one is intact, restored if there
// is none or a damaged one, and left alone if that cannot be determined.
func (s *Store) settle(old, final string) error {
	_, err := load(s.fs, final)
	switch {
	case err == nil:
		return vfs.RemoveAll(s.fs, old)
	case errors.Is(err, ErrDamaged):
		if err := s.fs.Rename(final, final+".damaged-"+vfs.Unique()); err != nil {
			return err
		}
		return s.fs.Rename(old, final)
	case errors.Is(err, fs.ErrNotExist):
		return s.fs.Rename(old, final)
	case errors.Is(err, ErrNewer):
		return nil
	}
	return err
}

// Dir returns the folder that holds the checkpoints.
func (s *Store) Dir() string { return s.dir }

func stepName(step int64) string { return fmt.Sprintf("step-%08d", step) }

func (s *Store) path(step int64) string { return filepath.Join(s.dir, stepName(step)) }

// Steps returns the steps that have a checkpoint, intact or not, in ascending order.
func (s *Store) Steps() ([]int64, error) {
	names, err := s.fs.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var steps []int64
	for _, name := range names {
		// The name of a number shows whether it was one.
		step, _ := strconv.ParseInt(strings.TrimPrefix(name, "step-"), 10, 64)
		if step >= 0 && stepName(step) == name {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// At returns the verified checkpoint of one step; the error is an ErrNone if there is none, an ErrDamaged if it is not
// intact.
func (s *Store) At(step int64) (*Checkpoint, error) {
	c, err := s.load(step)
	if errors.Is(err, fs.ErrNotExist) {
		steps, _ := s.Steps()
		return nil, fmt.Errorf("%w of step %d in %s: it has %d", ErrNone, step, s.dir, steps)
	}
	return c, err
}

// load reads one checkpoint and checks that its step matches the folder's name. Its error is an fs.ErrNotExist only if
// the folder is gone.
func (s *Store) load(step int64) (*Checkpoint, error) {
	c, err := load(s.fs, s.path(step))
	if err == nil && c.Step != step {
		err = fmt.Errorf("%w %s: %s: it is of step %d", ErrDamaged, s.path(step), manifestName, c.Step)
	}
	if err == nil {
		return c, nil
	}
	if _, serr := s.fs.Stat(s.path(step)); errors.Is(serr, fs.ErrNotExist) {
		return nil, serr
	}
	return nil, err
}

// Latest returns the newest intact checkpoint. Damaged ones are reported through warn (which may be nil) and skipped.
// One that is unreadable or of a newer format may be intact, so it is not skipped: the error is that ErrUnreadable or
// ErrNewer. It is an ErrNone if there is no checkpoint, and an ErrDamaged naming each one if there are some but none is
// intact.
func (s *Store) Latest(warn func(string)) (*Checkpoint, error) {
	var bad error
	for range 10 {
		steps, err := s.Steps()
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("%w in %s", ErrNone, s.dir)
		}
		var c *Checkpoint
		if c, bad = s.newest(steps, warn); bad == nil {
			return c, nil
		}
		if !errors.Is(bad, fs.ErrNotExist) {
			break
		}
		// The run's owner deleted one meanwhile, so a newer one exists: look again.
	}
	switch {
	case errors.Is(bad, ErrUnreadable):
		return nil, fmt.Errorf("%w; make it readable, or move the folder away to use the checkpoint before", bad)
	case errors.Is(bad, ErrNewer):
		return nil, fmt.Errorf("%w; use that program, or move the folder away to use the checkpoint before", bad)
	}
	return nil, fmt.Errorf("no whole checkpoint in %s: %w", s.dir, bad)
}

func (s *Store) newest(steps []int64, warn func(string)) (*Checkpoint, error) {
	var bad error
	for _, step := range slices.Backward(steps) {
		c, err := s.load(step)
		if err == nil {
			return c, nil
		}
		gone := errors.Is(err, fs.ErrNotExist)
		if !gone && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		bad = join(bad, err)
		if warn != nil && !gone {
			warn(err.Error())
		}
	}
	return nil, bad
}
