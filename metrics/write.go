package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"antiphase/internal/vfs"
)

// Writer is the open file of a run.
type Writer struct {
	fsys vfs.FS
	path string
	f    vfs.File
	end  int64 // of the last whole row
	buf  []byte
}

// Open opens a run's file to continue after the row of step, and truncates it there: later rows belong to lost work.
// Each remaining row is passed to keep; each damaged line among them is reported through warn and left in place. If
// rows up to step are missing at the end, warn says so, and names the damaged lines there.
func Open(fsys vfs.FS, path string, step int, keep func(*Row), warn func(string)) (*Writer, error) {
	end, err := scan(fsys, path, step, keep, warn)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	w := &Writer{fsys: fsys, path: path, end: end}
	if w.f, err = fsys.Append(path, end); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := fsys.SyncDir(filepath.Dir(path)); err != nil { // otherwise a power loss could remove the whole file
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), w.f.Close())
	}
	return w, nil
}

// scan finds the end of the last row to keep.
func scan(fsys vfs.FS, path string, step int, keep func(*Row), warn func(string)) (end int64, err error) {
	var damaged []string
	last := 0
	for l, err := range lines(fsys, path) {
		var bad *LineError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing(path, 0, step, warn)
			return 0, nil
		case errors.As(err, &bad):
			damaged = append(damaged, bad.Error())
			continue
		case err != nil:
			return 0, err
		}
		if l.row.Step > step {
			break
		}
		for _, d := range damaged {
			warn(d + "; it is skipped")
		}
		damaged, end, last = nil, l.end, l.row.Step
		keep(&l.row)
	}
	if last < step { // otherwise damage after the last row belongs to lost work
		for _, d := range damaged {
			warn(d + "; it is removed")
		}
	}
	missing(path, last, step, warn)
	return end, nil
}

// missing reports the rows between the last one and step.
func missing(path string, last, step int, warn func(string)) {
	switch {
	case step == last+1:
		warn(fmt.Sprintf("%s: the row of step %d is missing", path, step))
	case step > last:
		warn(fmt.Sprintf("%s: the rows of steps %d to %d are missing", path, last+1, step))
	}
}

// Write appends a row.
func (w *Writer) Write(r *Row) error {
	w.buf = r.Append(w.buf[:0])
	if _, err := w.f.WriteAt(w.buf, w.end); err != nil {
		w.cut()
		return fmt.Errorf("metrics: %w", err)
	}
	w.end += int64(len(w.buf))
	return nil
}

// cut removes a partial row if it can; the next row overwrites it in any case.
func (w *Writer) cut() {
	if f, err := w.fsys.Append(w.path, w.end); err == nil {
		_ = w.f.Close()
		w.f = f
	}
}

// Sync makes the rows so far durable.
func (w *Writer) Sync() error {
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Size is the length of all complete rows.
func (w *Writer) Size() int64 { return w.end }

// Close closes the file; every row was written with its own error checked.
func (w *Writer) Close() { _ = w.f.Close() }
