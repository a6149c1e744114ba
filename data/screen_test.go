package data

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Documents that are not UTF-8 or are empty are left out and counted, in every format.
func TestUnusableDocumentsAreCounted(t *testing.T) {
	lines := []byte(
		"{\"text\":\"one\"}\n{\"text\":\"caf\xe9\"}\n{\"text\":\" \\n\"}\n{\"text\":\"zwei äöü\"}\n{\"text\":\"\"}\n")
	text := []byte("one<|endoftext|>caf\xe9<|endoftext|> <|endoftext|>zwei äöü<|endoftext|><|endoftext|>\n")
	table := parquetOf(t, []row{{1, "one"}, {2, "caf\xe9"}, {3, " \n"}, {4, "zwei äöü"}, {5, ""}})
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"a.jsonl": lines, "a.jsonl.gz": gz(lines), "a.jsonl.zst": zst(lines), "a.txt": text, "a.md": text,
		"a.txt.zst": zst(text), "a.parquet": table,
	} {
		path := filepath.Join(dir, name)
		write(t, path, b)
		s := buildSet(t, open(t, path), narrow, BuildOptions{})
		if got := textsOf(t, s, Train, narrow); !slices.Equal(got, []string{"one", "zwei äöü"}) {
			t.Errorf("%s: documents %q", name, got)
		}
		if got := s.Manifest.Sources[0].Skipped; got != (Skipped{Empty: 2, NotUTF8: 1}) {
			t.Errorf("%s: skipped %+v, want 2 empty and 1 not UTF-8", name, got)
		}
	}
}

// Half of a surrogate pair in the text is no more UTF-8 than a stray byte; in another field of the line it does not
// matter.
func TestHalvesOfCharacters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, []byte(`{"text":"one"}
{"text":"cut \ud83d"}
{"text":"whole \ud83d\ude00"}
{"text":"two","title":"\ud83d"}
{"text":"\\ud83d is written out"}
`))
	s := buildSet(t, open(t, path), narrow, BuildOptions{})
	if got := textsOf(t, s, Train, narrow); !slices.Equal(got,
		[]string{"one", "whole 😀", "two", `\ud83d is written out`}) {
		t.Errorf("documents %q", got)
	}
	if got := s.Manifest.Sources[0].Skipped; got != (Skipped{NotUTF8: 1}) {
		t.Errorf("skipped %+v, want 1 not UTF-8", got)
	}
}

// A binary file, one without text and one of another kind are refused on opening, wherever they lie.
func TestUnusableSourcesAreRefused(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), bytes.Repeat([]byte{1, 2, 3, 0xff}, 100)...)
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		content []byte
		want    string
	}{
		"image.txt":      {png, "byte 8 is zero"},
		"image.md":       {png, "byte 8 is zero"},
		"image.txt.gz":   {gz(png), "byte 8 is zero"},
		"image.jsonl":    {png[:30], "line 2"},
		"empty.txt":      {nil, "no text"},
		"blank.txt":      {[]byte(" \n\n"), "no text"},
		"empty.jsonl":    {[]byte("\n\n"), "no text"},
		"latin.txt":      {[]byte("caf\xe9"), "no text"},
		"utf16.txt":      {[]byte("\xff\xfeh\x00i\x00"), "text in UTF-16"},
		"none.parquet":   {parquetOf(t, []row{{1, ""}}), "no text"},
		"folder/b.txt":   {png, "b.txt: byte 8 is zero"},
		"folder/a.txt":   {[]byte("fine"), ""},
		"hollow/a.jsonl": {[]byte("{\"text\":\"\"}"), "no text"},
	} {
		path := filepath.Join(dir, name)
		must(0, os.MkdirAll(filepath.Dir(path), 0o755))
		write(t, path, tc.content)
		if tc.want == "" {
			continue
		}
		_, err := Open(path)
		var c *CorruptError
		var s *SourceError
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.As(err, &c) && !errors.As(err, &s) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
	// In a folder the binary file comes after text, and is found when it is read.
	if _, err := readAll(t, filepath.Join(dir, "folder")); err == nil ||
		!strings.Contains(err.Error(), "b.txt: byte 8 is zero") {
		t.Errorf("a folder with a binary file: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "hollow")); err == nil || !strings.Contains(err.Error(), "no text") {
		t.Errorf("a folder without text: %v", err)
	}
}

// A source that gives nothing is refused although another gives text.
func TestEachSourceGivesText(t *testing.T) {
	_, err := Build(t.Context(), filepath.Join(t.TempDir(), "set"),
		[]Source{randomTexts(5, 20, 1), texts{docs: []string{"", ""}}, randomTexts(5, 20, 2)}, narrow, BuildOptions{})
	var s *SourceError
	if !errors.As(err, &s) || !strings.Contains(err.Error(), "2 empty") {
		t.Errorf("error %v", err)
	}
}

// A small file cannot ask for all memory: one line of 64 MB in 64 kB is refused when it gets too long.
func TestLongLineTakesLittleMemory(t *testing.T) {
	line := append(append([]byte(`{"text":"`), bytes.Repeat([]byte("a"), 64<<20)...), "\"}\n"...)
	path := filepath.Join(t.TempDir(), "bomb.jsonl.gz")
	write(t, path, gz(line))
	line = nil
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Open(path)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "line 1: longer than 16 MiB") {
		t.Errorf("error %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("reading allocated %d MiB", took>>20)
	}
	lines := fmt.Sprintf("{\"text\":%q}\n", strings.Repeat("b", 15<<20)) // the longest that is taken, nearly
	write(t, path, gz([]byte(lines)))
	if n, err := readAll(t, path); n != 1 || err != nil {
		t.Errorf("15 MiB: %d documents, %v", n, err)
	}
}
