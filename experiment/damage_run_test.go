package experiment

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"antiphase/data"
)

// finishedRun are few rows, as a finished run has them.
func finishedRun(experiment string, r *Run) []Row {
	base := Row{origin: origin{Experiment: experiment, Run: r.Name(), Size: r.Size, Arch: r.Arch, LR: r.LR,
		Seed: r.Seed}}
	rows := []Row{base, base, base}
	rows[0].Measure, rows[1].Measure, rows[2].Measure, rows[2].Value = "train.valid_loss", "train.spikes", Finished, 2
	return rows
}

// The file of a run counts only if it has the whole rows of that run and no others: one that was cut, emptied, doubled,
// joined, copied from another run, or edited is refused by its path.
func TestRowsOfARun(t *testing.T) {
	s := nanoSpec(12)
	l := &lab{Options: options(t.TempDir()), spec: s}
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir(&runs[1]), rowsName)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	good, other := finishedRun(s.Name, &runs[1]), finishedRun(s.Name, &runs[0])
	edited := func(change func(*Row)) []Row {
		rows := finishedRun(s.Name, &runs[1])
		change(&rows[1])
		return rows
	}
	for what, rows := range map[string][]Row{
		"empty": nil, "cut": good[:2], "without a row": {good[0], good[2]}, "twice": append(good[:3:3], good...),
		"of another run": other, "joined": append(good[:2:2], other...),
		"of another experiment":  finishedRun("x", &runs[1]),
		"of another arch":        edited(func(r *Row) { r.Arch = "gda" }),
		"of another size":        edited(func(r *Row) { r.Size = "tiny" }),
		"of another rate":        edited(func(r *Row) { r.LR *= 2 }),
		"of another seed":        edited(func(r *Row) { r.Seed++ }),
		"with a row of a run":    edited(func(r *Row) { r.Run = runs[0].Name() }),
		"with a row of the name": edited(func(r *Row) { r.Experiment = "x" }),
	} {
		write(t, path, rows)
		_, err := l.rows()
		if c, ok := errors.AsType[*data.CorruptError](err); !ok || c.File != path || !isUnpublished(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	write(t, path, good)
	if rows, err := l.rows(); err != nil || len(rows) != len(good) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	good[0].Task = &TaskInfo{Name: "lm", Kind: "lm", Question: "q"}
	good[0].Metric, good[0].Detail = "loss", []byte(`"text"`)
	write(t, path, good)
	if _, err := l.publish(); err == nil || !errors.As(err, new(*data.CorruptError)) {
		t.Errorf("a detail that is no figure's: %v", err)
	}
}

func write(t *testing.T, path string, rows []Row) {
	t.Helper()
	b, err := Encode(rows)
	if err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// No word of a row reaches a terminal or a document with a control character, whichever field has it.
func TestControlCharactersOfRows(t *testing.T) {
	const evil = "a\x1b[31m\u009b\nb"
	rows := sharing()
	for i := range rows {
		r := &rows[i]
		for _, text := range []*string{&r.Experiment, &r.Run, &r.Size, &r.Arch, &r.Tuned, &r.Data, &r.Machine,
			&r.Commit, &r.Command, &r.Metric, &r.Label, &r.Note} {
			*text += evil
		}
		if r.Measure != Finished {
			r.Measure += evil
		}
		if r.Task != nil {
			r.Task.Name, r.Task.Kind, r.Task.Question = evil, evil, evil
		}
	}
	path := filepath.Join(t.TempDir(), rowsName)
	write(t, path, rows)
	read, err := ReadRowFiles(path)
	if err != nil || len(read) != len(rows) || !strings.Contains(read[0].Label, `a\x1b[31m\x9b\x0ab`) {
		t.Fatalf("%v, %+v", err, read)
	}
	var doc bytes.Buffer
	if err := Evidence(filepath.Dir(path), &doc); err != nil {
		t.Fatal(err)
	}
	words := doc.String()
	if text, err := Encode(read); err != nil || bytes.Contains(text, []byte(`\u00`)) {
		t.Errorf("rows: %s, %v", text, err)
	}
	if i := strings.IndexFunc(words, func(c rune) bool { return unicode.IsControl(c) && c != '\n' }); i >= 0 {
		t.Errorf("the document has %q", words[max(i-40, 0):i+10])
	}
}
