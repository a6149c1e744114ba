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

// ErrCommitted marks an error of Save after the new checkpoint was durable: updating `latest` or deleting an old one
// failed. The checkpoint counts; the next Save retries the rest.
var ErrCommitted = errors.New("checkpoint is saved, tidying up failed")

// File is one file to save. Write streams its contents and must write the same bytes each time: after a full disk it is
// called once more to count the bytes needed. Contents should depend on the run's state only, not on clock or host.
type File struct {
	Name  string
	Write func(io.Writer) error
}

// Save stores files durably as the checkpoint of step, replacing one of the same step. If it returns nil the checkpoint
// survives a power loss. An error means that it does not exist and that older ones are unchanged, unless it is an
// ErrCommitted. After an ErrNoSpace a later Save may succeed.
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
		key := strings.ToLower(f.Name) // some file systems fold case, and a checkpoint must be movable to them
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

// writeFile writes, hashes and syncs one new file. A failed sync is not retried: the kernel may have dropped the pages.
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

// commit renames tmp to final durably, or undoes everything. An existing checkpoint is first renamed to a name from
// which Open would restore it; its path is returned for deletion.
func (s *Store) commit(tmp, final string) (aside string, err error) {
	aside, err = moveAside(s.fs, final)
	if err == nil {
		if err = s.fs.Rename(tmp, final); err == nil {
			if err = s.fs.SyncDir(s.dir); err == nil {
				return aside, nil
			}
			_ = s.fs.Rename(final, tmp) // not known to be durable, so it does not count
		}
		if aside != "" {
			_ = s.fs.Rename(aside, final) // if this fails too, the next clean does it
		}
		// The files may be deleted only once the names are durable again: otherwise a crash could expose a partly
		// deleted final.
		if s.fs.SyncDir(s.dir) != nil {
			return "", err
		}
	}
	discard(s.fs, tmp)
	return "", err
}

// moveAside moves a checkpoint aside and returns its new path, "" if there was none.
func moveAside(fsys vfs.FS, final string) (aside string, err error) {
	_, err = fsys.Stat(final)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	aside = final + ".old-" + vfs.Unique()
	return aside, fsys.Rename(final, aside)
}

// discard deletes a failed save as far as it can; the next clean deletes the rest.
func discard(fsys vfs.FS, tmp string) {
	_ = vfs.RemoveAll(fsys, tmp)
}

// Tidy repeats, for the newest checkpoint, the cleanup that Save does once it is durable, in case a process died there:
// `latest` names it, and checkpoints that the options do not keep are deleted.
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

// tidy does the cleanup that must wait until the new checkpoint is durable.
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

// writeLatest replaces the file `latest`, which is for people and scripts: Latest itself trusts only hashes.
func (s *Store) writeLatest(step int64) error {
	name := latestName + ".tmp-" + vfs.Unique()
	path := filepath.Join(s.dir, name)
	_, err := s.writeFile(s.dir, bytesFile(name, []byte(latestText(step))))
	if err == nil {
		err = s.fs.Rename(path, filepath.Join(s.dir, latestName))
	}
	if err != nil {
		discard(s.fs, path)
		return err
	}
	return s.fs.SyncDir(s.dir)
}
