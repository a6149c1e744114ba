package checkpoint

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// Draft is a checkpoint that several processes put together: one begins it, each writes its files into it, and the one that
// began it commits it with the entries of all. Until then it does not count, whoever dies.
type Draft struct {
	s    *Store
	step int64
	tmp  string
}

// Begin makes the folder of a new draft. Like Save it first clears what earlier ones left.
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
	_ = s.clean() // room that a failed Save could not free; should it fail again, this one may still succeed
	d := &Draft{s: s, step: step, tmp: s.path(step) + ".tmp-" + vfs.Unique()}
	return d, s.fs.Mkdir(d.tmp)
}

// failed is the error of a save that came to nothing, with what a checkpoint of so many bytes lacks on a full disk.
func (s *Store) failed(step int64, err error, need int64) error {
	return fmt.Errorf("checkpoint: save step %d: %w", step, s.explain(err, need))
}

// Name is what Join needs to find the draft.
func (d *Draft) Name() string { return filepath.Base(d.tmp) }

// Join is the draft that another process began in the same folder; this one may Write to it, also where it is open for
// reading only.
func (s *Store) Join(step int64, name string) (*Draft, error) {
	if parts := leftover.FindStringSubmatch(name); parts == nil || parts[1] != stepName(step) || parts[2] != "tmp" {
		return nil, fmt.Errorf("checkpoint: %q is not a draft of step %d", name, step)
	}
	return &Draft{s: s, step: step, tmp: filepath.Join(s.dir, name)}, nil
}

// Write writes, hashes and syncs files into the draft. Names must differ from those of other processes. After an error
// the draft is to be dropped by the process that began it.
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

// Commit makes the draft the checkpoint of its step, with these files of all processes. Its error is Save's.
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

// seal writes the manifest and makes the folder's names durable. Each file must be there: a process that sees another
// folder than this one wrote elsewhere.
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

// Drop gives the draft up.
func (d *Draft) Drop() { d.s.remove(d.tmp) }
