package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"antiphase/eval/report"
)

// Every report into a folder may replace what earlier ones wrote there, not only the last one's files.
func TestFilesOfSeveralReports(t *testing.T) {
	dir := t.TempDir()
	for _, list := range [][]report.File{{{Name: "a.csv", Data: []byte("1")}}, {{Name: "b.csv", Data: []byte("2")}},
		{{Name: "a.csv", Data: []byte("3")}, {Name: "b.csv", Data: []byte("4")}}} {
		if err := checkFiles(dir, list); err != nil {
			t.Fatal(err)
		}
		if err := writeFiles(dir, list); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeBytes(dir+"/a.csv", []byte("edited")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "folder"), 0o755),
		writeBytes(filepath.Join(dir, "mine"), nil)); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, data string
		good       bool
	}{
		{"a.csv", "5", false}, {"a.csv", "edited", true}, {"b.csv", "5", true}, {"new", "", true}, {"mine", "", true},
		{"mine", "5", false}, {"folder", "", false}, {"folder", "5", false},
	} {
		for _, list := range [][]report.File{{{Name: x.name, Data: []byte(x.data)}},
			{{Name: "b.csv"}, {Name: x.name, Data: []byte(x.data)}, {Name: "other"}}} {
			if err := checkFiles(dir, list); (err == nil) != x.good || err != nil && exitCode(err) != exitUsage {
				t.Errorf("%+v as one of %d: %v", x, len(list), err)
			}
		}
	}
}
