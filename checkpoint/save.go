package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"antiphase/internal/vfs"
)

// ErrCommitted marks an error of Save that came after the new checkpoint was safe: renewing `latest` or deleting an old
// one failed. The checkpoint counts; the next Save tries the rest again.
var ErrCommitted = errors.New("checkpoint is saved, tidying up failed")

// File is one file to save. Write streams its contents, the same bytes each time it is called: after a full disk it is
// called once more to count what was needed. Contents should be a function of the run's state alone, without clock or host.
type File struct {
	Name  string
	Write func(io.Writer) error
}

// Save makes files durable as the checkpoint of step, replacing one of the same step. When it returns nil the checkpoint
// survives a power loss. An error means that it does not exist and that older ones are as they were, unless it is an
// ErrCommitted. An ErrNoSpace error means that a later Save may well succeed.
func (s *Store) Save(step int64, files []File) error {
	if err := s.check(step, files); err != nil {
		return fmt.Errorf("checkpoint: save step %d: %w", step, err)
	}
	d, err := s.begin(step)
	var entries []Entry
	if err == nil {
		if entries, err = d.write(files); err != nil {
			d.Drop()
		}
	}
	aside := ""
	if err == nil {
		aside, err = d.commit(entries)
	}
	if err != nil {
		return s.failed(step, err, measure(files))
	}
	return d.tidy(aside)
}

func (s *Store) check(step int64, files []File) error {
	if s.opt.ReadOnly {
		return fmt.Errorf("%s is open for reading only", s.dir)
	}
	if step < 0 {
		return errors.New("a step is not negative")
	}
	return checkNames(files)
}

func checkNames(files []File) error {
	seen := map[string]bool{strings.ToLower(manifestName): true}
	for _, f := range files {
		key := strings.ToLower(f.Name) // some file systems fold case, and a checkpoint must be movable there
		if !fileName.MatchString(f.Name) || seen[key] {
			return fmt.Errorf("file name %q is taken, or is not made of letters, digits, '.', '_' and '-'", f.Name)
		}
		seen[key] = true
	}
	return nil
}

func bytesFile(name string, b []byte) File {
	return File{name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// writeFile writes, hashes and syncs one new file. A failed sync is not tried again: the kernel may have dropped the pages.
func (s *Store) writeFile(dir string, file File) (Entry, error) {
	out, err := s.fs.Create(filepath.Join(dir, file.Name))
	if err != nil {
		return Entry{}, err
	}
	h := vfs.NewSum(out)
	buf := buffers.Get().(*bufio.Writer)
	defer buffers.Put(buf)
	buf.Reset(h)
	err = file.Write(buf)
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return Entry{}, fmt.Errorf("write %s: %w", file.Name, err)
	}
	return Entry{Name: file.Name, Bytes: h.Bytes, SHA256: h.SHA256()}, nil
}

// commit renames tmp to final durably, or takes everything back. A checkpoint already there is moved aside first, to a
// name from which Open would bring it back; its path is returned for deletion.
func (s *Store) commit(tmp, final string) (aside string, err error) {
	aside, err = s.makeRoom(final)
	if err == nil {
		if err = s.fs.Rename(tmp, final); err == nil {
			if err = s.fs.SyncDir(s.dir); err == nil {
				return aside, nil
			}
			_ = s.fs.Rename(final, tmp) // not known to be durable, so it does not count
		}
		if aside != "" {
			_ = s.fs.Rename(aside, final) // should this fail too, the next clean does it
		}
		// The files may go only when the names are back for good: else a crash could show final, half deleted.
		if s.fs.SyncDir(s.dir) != nil {
			return "", err
		}
	}
	s.remove(tmp)
	return "", err
}

// makeRoom moves a checkpoint out of the way and returns where it went, "" when there was none.
func (s *Store) makeRoom(final string) (aside string, err error) {
	_, err = s.fs.Stat(final)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	aside = final + ".old-" + vfs.Unique()
	return aside, s.fs.Rename(final, aside)
}

// remove deletes what failed to become a checkpoint, as far as it can: the next clean deletes the rest.
func (s *Store) remove(tmp string) {
	_ = vfs.RemoveAll(s.fs, tmp)
}

// Tidy does for the newest checkpoint what Save does once it is durable, and a process that died there did not: `latest`
// names it, and those that the options do not keep are deleted.
func (s *Store) Tidy(step int64) error {
	if s.opt.ReadOnly {
		return fmt.Errorf("checkpoint: %s is open for reading only", s.dir)
	}
	text, err := vfs.ReadFile(s.fs, filepath.Join(s.dir, latestName), 64)
	if err != nil || string(text) != latestText(step) {
		err = s.writeLatest(step)
	}
	if err == nil {
		err = s.prune(step)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: tidy step %d: %w", step, err)
	}
	return nil
}

// tidy does what may only be done once the new checkpoint is durable.
func (s *Store) tidy(step int64, aside string) error {
	if err := s.writeLatest(step); err != nil {
		return err
	}
	if aside != "" {
		if err := vfs.RemoveAll(s.fs, aside); err != nil {
			return err
		}
	}
	return s.prune(step)
}

func latestText(step int64) string { return stepName(step) + "\n" }

// writeLatest replaces the file `latest`, a signpost for people and scripts: Latest itself trusts only hashes.
func (s *Store) writeLatest(step int64) error {
	name := latestName + ".tmp-" + vfs.Unique()
	path := filepath.Join(s.dir, name)
	_, err := s.writeFile(s.dir, bytesFile(name, []byte(latestText(step))))
	if err == nil {
		err = s.fs.Rename(path, filepath.Join(s.dir, latestName))
	}
	if err != nil {
		s.remove(path)
		return err
	}
	return s.fs.SyncDir(s.dir)
}
