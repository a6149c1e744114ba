package main

import (
	"testing"

	"antiphase/eval/report"
)

// Every report into a folder may replace what earlier ones wrote there, not only the last one's files.
func TestFilesOfSeveralReports(t *testing.T) {
	dir := t.TempDir()
	for _, list := range [][]report.File{{{Name: "a.csv", Data: []byte("1")}}, {{Name: "b.csv", Data: []byte("2")}}, {{Name: "a.csv", Data: []byte("3")}, {Name: "b.csv", Data: []byte("4")}}} {
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
	if checkFiles(dir, []report.File{{Name: "a.csv", Data: []byte("5")}}) == nil {
		t.Error("an edited file would be replaced")
	}
}
