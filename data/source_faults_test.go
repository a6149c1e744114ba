package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Files without a document, of every kind, do not end the reading of a folder.
func TestEmptyFilesAmongOthers(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"a.txt": nil, "b.txt": []byte("one"), "c.txt": nil, "d.jsonl": nil, "e.jsonl.gz": gz([]byte("\n\n")),
		"f.txt.zst": zst([]byte("\n")), "g.md": []byte("two"),
		"h.parquet": parquetOf(t, []row{}), "i.txt": []byte("<|endoftext|>"), "j.txt": []byte("three"), "k.md": nil,
	} {
		write(t, filepath.Join(dir, name), b)
	}
	got, from := read(t, open(t, dir))
	if !slices.Equal(got, []string{"one", "two", "three"}) || !slices.Equal(from, []string{"b.txt", "g.md", "j.txt"}) {
		t.Errorf("%q from %q", got, from)
	}
}

// blank is a source whose fingerprint cannot be taken.
type blank struct{ named }

func (blank) Fingerprint() (string, error) { return "print", errors.New("no print") }

// A build refuses options below zero and sources that cannot be recognised, each with its name and number.
func TestBuildSaysWhatIsWrong(t *testing.T) {
	good := named{randomTexts(5, 20, 1), "good"}
	for want, c := range map[string]struct {
		src []Source
		opt BuildOptions
	}{
		"ShardTokens -1, MaxTokens 7, Workers 2: none": {[]Source{good},
			BuildOptions{ShardTokens: -1, MaxTokens: 7, Workers: 2}},
		"ShardTokens 3, MaxTokens -5, Workers 2: none": {[]Source{good},
			BuildOptions{ShardTokens: 3, MaxTokens: -5, Workers: 2}},
		"ShardTokens 3, MaxTokens 0, Workers -4: none": {[]Source{good}, BuildOptions{ShardTokens: 3, Workers: -4}},
		"HeldOut -0.1, want":                           {[]Source{good}, BuildOptions{HeldOut: -0.1}},
		"1 shares for 2 sources": {[]Source{good, good},
			BuildOptions{Shares: []Share{{Weight: 1}}}},
		"source bad: no print": {[]Source{good, blank{named{good.texts, "bad"}}},
			BuildOptions{}},
		"a share of weight 0 and 1 epochs: want a posi": {[]Source{good}, BuildOptions{Shares: []Share{{Epochs: 1}}}},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		_, err := Build(t.Context(), dir, c.src, narrow, c.opt)
		if err == nil || !strings.HasPrefix(err.Error(), "data: build: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder is there", want)
		}
	}
}

// An estimate fails where reading fails: in a source of any kind, and in a file that is damaged or gone.
func TestEstimateFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := EstimateText(t.Context(), texts{docs: []string{"x"}, err: broken}, 1<<20); !errors.Is(err, broken) {
		t.Errorf("a source that fails: %v", err)
	}
	dir := t.TempDir()
	for i := range 3 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.jsonl", i)), []byte("{\"text\":\"one\"}\n{\"text\":\"two\"}\n"))
	}
	write(t, filepath.Join(dir, "a.txt"), []byte("three"))
	src := open(t, dir)
	if e, err := EstimateText(t.Context(), src, 1<<20); err != nil || e.Bytes != 3*6+5 {
		t.Fatalf("%+v, %v", e, err)
	}
	bad := filepath.Join(dir, "1.jsonl")
	write(t, bad, []byte("{\"text\":\"one\"}\n{\"text\":\n"))
	if _, err := EstimateText(t.Context(), src, 1<<20); err == nil || mustCorrupt(t, err, "1.jsonl") == nil {
		t.Errorf("a damaged file: %v", err)
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	if _, err := EstimateText(t.Context(), src, 1<<20); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
}
