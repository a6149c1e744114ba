package data

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"antiphase/internal/vfs/vfstest"
)

func open(t *testing.T, spec string) Source {
	t.Helper()
	s, err := Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the texts and the files they came from.
func read(t *testing.T, s Source) (text, from []string) {
	t.Helper()
	for d, err := range s.Documents(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		text, from = append(text, d.Text), append(from, d.Source)
	}
	return text, from
}

func gz(b []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

func zst(b []byte) []byte {
	w := must(zstd.NewWriter(nil))
	defer w.Close()
	return w.EncodeAll(b, nil)
}

func parquetOf[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[T](&buf, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(100))
	must(w.Write(rows))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

type row struct {
	ID   int64  `parquet:"id"`
	Text string `parquet:"text"`
}

func TestFormats(t *testing.T) {
	want := []string{"first\nline two", "zweites Dokument: äöü", "3rd \"quoted\""}
	jsonl := []byte(`{"text": "first\nline two", "id": 1}` + "\n\n" + `{"text": "zweites Dokument: \u00e4ö\u00fc"}` +
		"\r\n" + `{"meta": {}, "text": "3rd \"quoted\""}`)
	text := []byte(
		"\ufefffirst\nline two\n<|endoftext|>\nzweites Dokument: äöü<|endoftext|>\n\n<|endoftext|>3rd \"quoted\"\n")
	table := parquetOf(t, []row{{1, want[0]}, {2, want[1]}, {3, want[2]}})
	type optional struct {
		Text *string `parquet:"text,optional"`
	}
	nullable := parquetOf(t, []optional{{&want[0]}, {nil}, {&want[1]}, {&want[2]}})
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"a.jsonl": jsonl, "a.jsonl.gz": gz(jsonl), "a.jsonl.zst": zst(jsonl), "A.JSONL": jsonl,
		"a.txt": text, "a.txt.gz": gz(text), "a.txt.zst": zst(text), "a.md": text, "a.md.gz": gz(text),
		"a.md.zst":  zst(text),
		"a.parquet": table, "b.parquet": nullable,
	} {
		path := filepath.Join(dir, name)
		write(t, path, content)
		got, from := read(t, open(t, path))
		if !slices.Equal(got, want) || from[0] != name {
			t.Errorf("%s: documents %q from %q, want %q", name, got, from, want)
		}
	}
}

func TestParquetRowGroups(t *testing.T) {
	var rows []row
	var want []string
	for i := range 1234 {
		rows = append(rows, row{int64(i), fmt.Sprintf("document %d", i)})
		want = append(want, rows[i].Text)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	write(t, path, parquetOf(t, rows))
	if got, _ := read(t, open(t, path)); !slices.Equal(got, want) {
		t.Errorf("%d documents, want %d in order", len(got), len(want))
	}
}

func TestFolderAndGlob(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b/2.txt", "a/1.txt", "c.jsonl", ".git/x.txt", "a/readme.rst", "d.txt",
		"e.txt/3.md"} { // e.txt is a folder
		must(0, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		content := name
		if strings.HasSuffix(name, ".jsonl") {
			content = fmt.Sprintf(`{"text":%q}`, name)
		}
		write(t, filepath.Join(dir, name), []byte(content))
	}
	for spec, want := range map[string][]string{
		dir:                                {"a/1.txt", "b/2.txt", "c.jsonl", "d.txt", "e.txt/3.md"},
		filepath.Join(dir, "*"):            {"c.jsonl", "d.txt"},
		filepath.Join(dir, "[ab]", "*"):    {"a/1.txt", "b/2.txt"},
		filepath.Join(dir, "?", "1.*"):     {"a/1.txt"},
		filepath.Join(dir, "b") + "/":      {"b/2.txt"},
		filepath.Join(dir, "b") + "/2.txt": {"b/2.txt"},
	} {
		if got, _ := read(t, open(t, spec)); !slices.Equal(got, want) {
			t.Errorf("%s: documents %q, want %q", spec, got, want)
		}
	}
}

func TestFingerprintFollowsTheFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	write(t, path, []byte("one"))
	print := func() string { return must(open(t, dir).(Fingerprinter).Fingerprint()) }
	first := print()
	if print() != first {
		t.Error("fingerprint is not stable")
	}
	must(0, os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)))
	second := print()
	write(t, filepath.Join(dir, "b.txt"), []byte("two"))
	if third := print(); first == second || second == third {
		t.Errorf("fingerprints %s, %s, %s should differ", first, second, third)
	}
}

// A fingerprint follows the time to the nanosecond, the size, the name and the set of files, each by itself.
func TestFingerprintOfEachChange(t *testing.T) {
	at := time.Unix(1e9, 5000)
	seen := map[string]string{}
	for name, change := range map[string]func(dir string){
		"nothing": func(string) {},
		"a nanosecond later": func(dir string) {
			must(0,
				os.Chtimes(filepath.Join(dir, "a.txt"), time.Time{}, at.Add(1)))
		},
		"a second later": func(dir string) {
			must(0,
				os.Chtimes(filepath.Join(dir, "a.txt"), time.Time{}, at.Add(time.Second)))
		},
		"a byte more": func(dir string) { write(t, filepath.Join(dir, "a.txt"), []byte("one!")) },
		"another name": func(dir string) {
			must(0,
				os.Rename(filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")))
		},
		"the other file": func(dir string) { write(t, filepath.Join(dir, "c.txt"), []byte("lots")) },
		"a file more":    func(dir string) { write(t, filepath.Join(dir, "d.txt"), []byte("two")) },
		"a file less":    func(dir string) { must(0, os.Remove(filepath.Join(dir, "c.txt"))) },
		"the names exchanged": func(dir string) {
			exchange(t, filepath.Join(dir, "a.txt"),
				filepath.Join(dir, "c.txt"))
		},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"a.txt": "one", "c.txt": "three"} {
			write(t, filepath.Join(dir, file), []byte(text))
			must(0, os.Chtimes(filepath.Join(dir, file), time.Time{}, at))
		}
		change(dir)
		if name == "a byte more" { // the time must not tell it
			must(0, os.Chtimes(filepath.Join(dir, "a.txt"), time.Time{}, at))
		}
		first := must(open(t, dir).(Fingerprinter).Fingerprint())
		if again := must(open(t, dir).(Fingerprinter).Fingerprint()); again != first {
			t.Errorf("%s: %s, then %s", name, first, again)
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%s and %s have the same fingerprint", name, other)
		}
		seen[first] = name
	}
}

// exchange gives two files each other's names.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	must(0, os.Rename(a, a+".x"))
	must(0, os.Rename(b, a))
	must(0, os.Rename(a+".x", b))
}

// A long text is cut at paragraphs into documents that lose nothing but the cuts.
func TestLongText(t *testing.T) {
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, "Paragraph %d tells of – ahem – not much.\nTwo lines of it.\n\n", i)
	}
	noBreaks := strings.Repeat("äß€", 100000)
	path := filepath.Join(t.TempDir(), "x.txt")
	for _, text := range []string{strings.TrimRight(b.String(), "\n"), noBreaks} {
		write(t, path, []byte(text))
		got, _ := read(t, open(t, path))
		sep := "\n\n"
		if text == noBreaks {
			sep = ""
		}
		if strings.Join(got, sep) != text || len(got) < 5 {
			t.Errorf("%d documents do not add up to the text", len(got))
		}
		for _, d := range got {
			if len(d) > textChunk || !utf8.ValidString(d) {
				t.Errorf("document of %d bytes, valid %v", len(d), utf8.ValidString(d))
			}
		}
	}
}

// A space near the beginning of a long piece is no place to cut: documents stay longer than half of what they may be.
func TestNoShortPieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	write(t, path, []byte(strings.Repeat("a "+strings.Repeat("b", textChunk), 4)))
	got, _ := read(t, open(t, path))
	for i, d := range got[:len(got)-1] {
		if len(d) < textChunk/2 {
			t.Errorf("document %d of %d has %d bytes", i, len(got), len(d))
		}
	}
}

func TestOpenErrorsSayWhatIsRight(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "x.csv"), []byte("a,b"))
	for spec, want := range map[string]string{
		"":                                 "empty spec",
		filepath.Join(dir, "none.txt"):     "none.txt",
		filepath.Join(dir, "x.csv"):        ".jsonl.zst or .parquet",
		dir:                                "holds no file that ends with",
		filepath.Join(dir, "*"):            "it matches 1 other names",
		filepath.Join(dir, "[x"):           "syntax error",
		"synthetic:sed=1":                  "want seed, docs",
		"synthetic:docs=0":                 "from 1 to",
		"synthetic:docs=many":              "from 1 to",
		"synthetic:seed=-1":                "whole number",
		"synthetic:mix=poems:1":            "unknown kind \"poems\"; want some of prose, facts",
		"synthetic:mix=prose:x":            "weight \"x\"",
		"synthetic:mix=":                   "unknown kind",
		"synthetic:needles=1000":           "from 1 to",
		"goroot:1":                         "goroot:1",
		filepath.Join(dir, "deep", "x.go"): "x.go",
	} {
		if _, err := Open(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): error %v, want one with %q", spec, err, want)
		}
	}
}

func TestBadContentIsNamed(t *testing.T) {
	table := parquetOf(t, []row{{1, "x"}})
	type other struct {
		Body string `parquet:"body"`
	}
	type list struct {
		Text []string `parquet:"text"`
	}
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		content []byte
		want    string
	}{
		"json.jsonl":    {[]byte("{\"text\":\"ok\"}\n{\"text\":"), "line 2"},
		"field.jsonl":   {[]byte(`{"content":"x"}`), `line 1: no field "text"`},
		"type.jsonl":    {[]byte(`{"text":5}`), "line 1"},
		"gz.txt.gz":     {[]byte("plain text, not packed"), "gzip"},
		"cut.jsonl.gz":  {gz(bytes.Repeat([]byte("{\"text\":\"x\"}\n"), 10))[:20], "unexpected EOF"},
		"zst.txt.zst":   {[]byte("plain text"), "magic"},
		"other.parquet": {parquetOf(t, []other{{"x"}}), "its columns are body (STRING)"},
		"list.parquet":  {parquetOf(t, []list{{[]string{"x"}}}), "its columns are text (list of STRING)"},
		"cut.parquet":   {table[:len(table)/2], "parquet"},
		"empty.parquet": {nil, "parquet"},
	} {
		path := filepath.Join(dir, name)
		write(t, path, tc.content)
		_, err := readAll(t, path)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

func TestSourcesStop(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), []byte("one<|endoftext|>two<|endoftext|>three"))
	for _, s := range []Source{open(t, dir), open(t, "synthetic")} {
		n := 0
		for range s.Documents(context.Background()) {
			if n++; n == 2 {
				break
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		var last error
		for _, err := range s.Documents(ctx) {
			cancel()
			last = err
		}
		cancel()
		if n != 2 || last != context.Canceled {
			t.Errorf("%s: %d documents before a break, error %v after cancelling", s.Name(), n, last)
		}
	}
}

func TestGoroot(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	if _, err := Open("goroot"); err == nil || !strings.Contains(err.Error(), "set GOROOT") {
		t.Errorf("error %v, want advice", err)
	}
	for _, name := range []string{"src/a/a.go", "src/README.md", "src/a/testdata/x.go", "src/a/a.s", "lib/x.go"} {
		must(0, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		write(t, filepath.Join(root, name), []byte("// "+name))
	}
	if _, from := read(t, open(t, "goroot")); !slices.Equal(from, []string{"README.md", "a/a.go"}) {
		t.Errorf("files %q", from)
	}
}

// Links are followed, as the cache of Hugging Face and linked folders need: to a folder, to files and to folders within
// it. A folder is read once, also if a link leads back to it, and a link to nothing is an error.
func TestOpenFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []string{"corpus/real", "elsewhere/deep"} {
		if err := os.MkdirAll(filepath.Join(dir, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "corpus/real/a.txt"), []byte("real"))
	write(t, filepath.Join(dir, "elsewhere/blob"), []byte("linked file"))
	write(t, filepath.Join(dir, "elsewhere/deep/d.md"), []byte("linked folder"))
	link := func(to, at string) {
		vfstest.Symlink(t, filepath.FromSlash(to), filepath.Join(dir, at))
	}
	link("../elsewhere/blob", "corpus/b.txt")
	link("../elsewhere/deep", "corpus/sub")
	link("..", "corpus/real/up")       // a cycle
	link("nowhere", "corpus/other.go") // of no kind that is read
	link(filepath.Join(dir, "corpus"), "corpus/zero")
	link("corpus", "linked")
	t.Chdir(dir)
	for _, spec := range []string{"corpus", "linked", filepath.Join(dir, "corpus")} {
		text, from := read(t, open(t, spec))
		if !slices.Equal(text, []string{"linked file", "real", "linked folder"}) ||
			!slices.Equal(from, []string{"b.txt", "real/a.txt", "sub/d.md"}) {
			t.Errorf("%s: %q of %q", spec, text, from)
		}
	}
	link("nowhere", "corpus/c.txt")
	if _, err := Open(filepath.Join(dir, "corpus")); err == nil || !strings.Contains(err.Error(), "c.txt") {
		t.Errorf("a link to nothing: %v", err)
	}
}

// Text in UTF-16, as some editors save it, is refused with a word about its encoding.
func TestOpenUTF16(t *testing.T) {
	for _, b := range []string{"\xff\xfeh\x00i\x00", "\xfe\xff\x00h\x00i"} {
		path := filepath.Join(t.TempDir(), "a.txt")
		write(t, path, []byte(b))
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "UTF-16") ||
			!strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q: %v", b, err)
		}
	}
}
