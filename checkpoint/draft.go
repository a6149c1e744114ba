package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// Draft is a checkpoint that several processes write together: one begins it, each writes its files into it, and the
// first commits it with the entries of all. Until then it does not count, even if a process dies.
type Draft struct {
	s    *Store
	step int64
	tmp  string
}

// Begin creates the folder of a new draft. Like Save it first removes leftovers of earlier ones.
func (s *Store) Begin(step int64) (*Draft, error) {
	d, err := s.begin(step)
	if err != nil {
		return nil, s.failed(step, err, 0)
	}
	return d, nil
}

func (s *Store) begin(step int64) (*Draft, error) {
	if err := s.check(step, nil); err != nil {
		return nil, err
	}
	_ = s.clean() // frees space that a failed Save left; if this fails, the new save may still succeed
	d := &Draft{s: s, step: step, tmp: s.path(step) + ".tmp-" + vfs.Unique()}
	return d, s.fs.Mkdir(d.tmp)
}

// failed is the error of a save that did not succeed; on a full disk it includes the missing bytes.
func (s *Store) failed(step int64, err error, need int64) error {
	return fmt.Errorf("checkpoint: save step %d: %w", step, explain(s, err, need))
}

// Name identifies the draft for Join.
func (d *Draft) Name() string { return filepath.Base(d.tmp) }

// Join opens a draft that another process began in the same folder. The result may only be written to; the store may be
// read-only.
func (s *Store) Join(step int64, name string) (*Draft, error) {
	if parts := leftover.FindStringSubmatch(name); parts == nil || parts[1] != stepName(step) || parts[2] != "tmp" {
		return nil, fmt.Errorf("checkpoint: %q is not a draft of step %d", name, step)
	}
	return &Draft{s: s, step: step, tmp: filepath.Join(s.dir, name)}, nil
}

// Write writes, hashes and syncs files into the draft. Names must differ from those of other processes. After an error
// the process that began the draft must drop it.
func (d *Draft) Write(files []File) ([]Entry, error) {
	out, err := d.write(files)
	if err != nil {
		return nil, d.s.failed(d.step, err, measure(files))
	}
	return out, nil
}

func (d *Draft) write(files []File) (out []Entry, err error) {
	if err := checkNames(files); err != nil {
		return nil, err
	}
	for _, f := range files {
		e, err := d.s.writeFile(d.tmp, f)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Commit turns the draft into the checkpoint of its step, with these files of all processes. Its errors are Save's.
func (d *Draft) Commit(entries []Entry) error {
	aside, err := d.commit(entries)
	if err != nil {
		return d.s.failed(d.step, err, Manifest{Files: entries}.Bytes())
	}
	return d.tidy(aside)
}

func (d *Draft) commit(entries []Entry) (aside string, err error) {
	if err := d.seal(entries); err != nil {
		d.Drop()
		return "", err
	}
	return d.s.commit(d.tmp, d.s.path(d.step))
}

func (d *Draft) tidy(aside string) error {
	if err := d.s.tidy(d.step, aside); err != nil {
		return fmt.Errorf("%w: step %d: %w", ErrCommitted, d.step, err)
	}
	return nil
}

// seal writes the manifest and makes the folder's entries durable. Each file must exist: a process that sees a
// different folder wrote elsewhere.
func (d *Draft) seal(entries []Entry) error {
	m := Manifest{Format: Format, Step: d.step, Files: append([]Entry{}, entries...)}
	slices.SortFunc(m.Files, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	for i, e := range m.Files {
		if i > 0 && e.Name == m.Files[i-1].Name {
			return fmt.Errorf("two processes wrote %s", e.Name)
		}
		info, err := d.s.fs.Stat(filepath.Join(d.tmp, e.Name))
		if err != nil {
			return fmt.Errorf("%w: all processes must see one folder", err)
		}
		if info.Size != e.Bytes {
			return fmt.Errorf("%s has %d bytes, its writer says %d", e.Name, info.Size, e.Bytes)
		}
	}
	b, err := m.render()
	if err != nil {
		return err
	}
	if _, err := d.s.writeFile(d.tmp, bytesFile(manifestName, b)); err != nil {
		return err
	}
	return d.s.fs.SyncDir(d.tmp)
}

// Drop discards the draft.
func (d *Draft) Drop() { discard(d.s.fs, d.tmp) }
