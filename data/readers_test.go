package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"antiphase/internal/vfs/vfstest"
)

// However few bytes arrive at a time, documents are the same; a byte order mark counts only at the beginning.
func TestReadersOfSmallReads(t *testing.T) {
	long := strings.Repeat("word ", textChunk/4)
	cut := strings.LastIndex(long[:textChunk], " ")
	for name, c := range map[string]struct {
		read streamFunc
		text string
		want []string
	}{
		"text": {readText, bom + "one" + textBreak + bom + "two" + textBreak + "three\r\n",
			[]string{"one", bom + "two", "three"}},
		"no mark":        {readText, "a", []string{"a"}},
		"half a mark":    {readText, bom[:2], []string{bom[:2]}},
		"only a mark":    {readText, bom, nil},
		"two marks":      {readText, bom + bom + "x", []string{bom + "x"}},
		"breaks":         {readText, textBreak + "a" + textBreak + textBreak + "b", []string{"", "a", "", "b"}},
		"nearly a break": {readText, "a<|endoftext|b" + textBreak[:5], []string{"a<|endoftext|b" + textBreak[:5]}},
		"a long text":    {readText, long, []string{long[:cut], long[cut+1:]}},
		"lines": {readJSONL, bom + `{"text":"a"}` + "\n\n \r\n" + `{"text":"b\n"}` + "\r\n" + `{"text":""}`,
			[]string{"a", "b\n", ""}},
		"a line of nothing": {readJSONL, "\n", nil},
	} {
		for kind, r := range map[string]*bufio.Reader{
			"whole":          bufio.NewReader(strings.NewReader(c.text)),
			"byte by byte":   bufio.NewReader(iotest.OneByteReader(strings.NewReader(c.text))),
			"with its end":   bufio.NewReader(iotest.DataErrReader(strings.NewReader(c.text))),
			"a small buffer": bufio.NewReaderSize(strings.NewReader(c.text), 16),
		} {
			var got []string
			if err := c.read(r, func(s string) bool { got = append(got, s); return true }); err != nil ||
				!slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %.80q, %v; want %.80q", name, kind, got, err, c.want)
			}
		}
	}
	for n, good := range map[int]bool{maxLine: true, maxLine + 1: false} { // the end of the line counts
		line, err := readLine(bufio.NewReader(strings.NewReader(strings.Repeat("x", n-1)+"\nnext")), nil)
		if (err == nil) != good || good && len(line) != n {
			t.Errorf("a line of %d bytes: %d, %v", n, len(line), err)
		}
	}
	broken := errors.New("broken")
	for name, read := range map[string]streamFunc{"text": readText, "lines": readJSONL} {
		r := bufio.NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(`{"text":"a"}`))))
		if err := read(r, func(string) bool { return true }); !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("%s: an error of the reader became %v", name, err)
		}
		if err := read(bufio.NewReader(iotest.ErrReader(broken)), func(string) bool { return true }); !errors.Is(err,
			broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A long text is cut at the last space of its second half, the later the better; without one at a character; and at the
// bound, or up to three bytes before it, where there are no characters.
func TestCutsOfLongTexts(t *testing.T) {
	const half = textChunk / 2
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		text string
		cuts []int // lengths of the documents
	}{
		"a space before the half": {x(half-1) + " " + x(textChunk), []int{textChunk, half}},
		"a space at the half":     {x(half) + " " + x(textChunk), []int{half, textChunk}},
		"a space at the end":      {x(textChunk-1) + " " + x(9), []int{textChunk - 1, 9}},
		"a space behind the end":  {x(textChunk) + " " + x(9), []int{textChunk, 10}},
		"a line before a space":   {x(half) + "\n" + x(99) + " " + x(textChunk), []int{half, textChunk, 100}},
		"no more than fits":       {x(textChunk), []int{textChunk}},
		"one more than fits":      {x(textChunk + 1), []int{textChunk, 1}},
		"two bytes":               {"x" + strings.Repeat("é", half+9), []int{textChunk - 1, 20}},
		"four bytes, one over":    {"x" + strings.Repeat("😀", half), []int{textChunk - 3, textChunk, 4}},
		"four bytes, three over":  {"xxx" + strings.Repeat("😀", half), []int{textChunk - 1, textChunk, 4}},
		"no characters":           {strings.Repeat("\x80", 2*textChunk), []int{textChunk - 3, textChunk - 3, 6}},
	} {
		var got []int
		if err := readText(bufio.NewReader(strings.NewReader(c.text)),
			func(s string) bool { got = append(got, len(s)); return true }); err != nil || !slices.Equal(got, c.cuts) {
			t.Errorf("%s: documents of %v bytes, %v; want %v", name, got, err, c.cuts)
		}
	}
}

// A reader that is told to stop calls no more, in every format and at every place: within a page, a group, a file.
func TestReadersStopAtOnce(t *testing.T) {
	const n = 250 // parquetOf begins a group of rows every 100
	var lines, text bytes.Buffer
	var rows []row
	for i := range n {
		fmt.Fprintf(&lines, "{\"text\":\"%d\"}\n", i)
		fmt.Fprintf(&text, "%d%s", i, textBreak)
		rows = append(rows, row{int64(i), fmt.Sprint(i)})
	}
	dir := t.TempDir()
	stop := errors.New("enough")
	for name, b := range map[string][]byte{"a.jsonl": lines.Bytes(), "b.jsonl.gz": gz(lines.Bytes()),
		"c.jsonl.zst": zst(lines.Bytes()),
		"d.txt":       text.Bytes(), "e.md.gz": gz(text.Bytes()), "f.parquet": parquetOf(t, rows)} {
		path := filepath.Join(dir, name)
		write(t, path, b)
		for _, most := range []int{1, 2, 63, 64, 65, 99, 100, 101, 200, 249, 250, 251} {
			calls := 0
			if err := readFile(path, readerOf(path, readers), func(s string) bool {
				if s != fmt.Sprint(calls) {
					t.Fatalf("%s: document %d is %q", name, calls, s)
				}
				calls++
				return calls < most
			}); err != nil || calls != min(most, n) {
				t.Errorf("%s: %d calls and %v, told to stop after %d", name, calls, err, most)
			}
			if strings.HasPrefix(name, "d") || strings.HasPrefix(name, "e") {
				continue
			}
			calls = 0
			err := Rows(path, func(k int, r map[string]any) error {
				if calls++; k != calls || r["text"] != fmt.Sprint(calls-1) {
					t.Fatalf("%s: row %d is %v of number %d", name, calls, r, k)
				}
				if calls == most {
					return stop
				}
				return nil
			})
			if want := most <= n; errors.Is(err, stop) != want || want && err.Error() != path+": enough" ||
				calls != min(most, n) {
				t.Errorf("%s: %d rows and %v, told to stop after %d", name, calls, err, most)
			}
		}
	}
}

// Files of a folder come in the order of their whole paths, which is not that of walking it; each once, whatever links
// lead to its folder.
func TestOrderOfAFolder(t *testing.T) {
	dir := t.TempDir()
	want := []string{"a b.txt", "a-b.txt", "a.txt", "a/z.txt", "a0.txt", "b/c/d.txt", "b/c.txt"}
	slices.Sort(want)
	for _, name := range want {
		must(0, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		write(t, filepath.Join(dir, name), []byte(name))
	}
	if got, from := read(t, open(t, dir)); !slices.Equal(got, want) || !slices.Equal(from, want) {
		t.Errorf("%q from %q, want %q", got, from, want)
	}
	if got := open(t, dir).Name(); got != dir {
		t.Errorf("the source is named %q", got)
	}
	vfstest.Symlink(t, filepath.Join(dir, "b"), filepath.Join(dir, "z"))
	vfstest.Symlink(t, filepath.Join(dir, "z"), filepath.Join(dir, "zz"))
	if got, _ := read(t, open(t, dir)); !slices.Equal(got, want) {
		t.Errorf("with two links to a folder: %q", got)
	}
}

// What has the name of a text and is neither a file nor a folder is not read: a socket here, in a folder and by a glob.
func TestOnlyFilesAreRead(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "b.txt", []byte("text"))
	l, err := net.Listen("unix", "a.txt")
	if err != nil {
		t.Skip("no sockets here: ", err)
	}
	defer l.Close()
	for _, spec := range []string{".", "*.txt"} {
		if got, from := read(t, open(t, spec)); !slices.Equal(got, []string{"text"}) ||
			!slices.Equal(from, []string{"b.txt"}) {
			t.Errorf("%s: %q of %q", spec, got, from)
		}
	}
}

// A file that breaks is named by its path from here, whichever way it was found.
func TestBrokenFilesByPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must(0, os.MkdirAll("f/sub", 0o755))
	write(t, "f/a.txt", []byte("text"))
	write(t, "f/sub/b.jsonl", []byte("{\"text\":\"x\"}\n{"))
	for spec, want := range map[string]string{
		"f": "f/sub/b.jsonl", "f/sub/b.jsonl": "f/sub/b.jsonl", "f/sub/*": "f/sub/b.jsonl", "./f": "f/sub/b.jsonl",
		filepath.Join(dir, "f"): filepath.ToSlash(filepath.Join(dir, "f/sub/b.jsonl")),
	} {
		_, err := readAll(t, spec)
		if err == nil || filepath.ToSlash(err.Error()) != "data: "+want+": line 2: unexpected end of JSON input" {
			t.Errorf("%s: %v", spec, err)
		}
	}
	must(0, os.Remove("f/a.txt"))
	write(t, "f/sub/b.jsonl", []byte("{"))
	if _, err := Open("f"); err == nil ||
		filepath.ToSlash(err.Error()) != "data: f/sub/b.jsonl: line 1: unexpected end of JSON input" {
		t.Error(err)
	}
}

// What a source is called and what it says of itself: folders of Go, generators, errors with the system's behind them.
func TestNamesOfSources(t *testing.T) {
	root := t.TempDir()
	t.Setenv("GOROOT", root)
	must(0, os.MkdirAll(filepath.Join(root, "src"), 0o755))
	write(t, filepath.Join(root, "src", "x.go"), []byte("package x"))
	if s := open(t, "goroot"); s.Name() != "goroot" {
		t.Errorf("named %q", s.Name())
	}
	t.Setenv("GOROOT", "") // then the one that the program go names
	if s, err := Open("goroot"); err != nil || len(s.(*files).paths) < 1000 {
		t.Errorf("without GOROOT: %v", err)
	}
	t.Setenv("GOROOT", t.TempDir())
	write(t, filepath.Join(os.Getenv("GOROOT"), "src"), []byte("a file"))
	if _, err := Open("goroot"); err == nil || !strings.Contains(err.Error(), "src is not a folder; set GOROOT") {
		t.Errorf("a file for the sources of Go: %v", err)
	}
	_, err := Open(filepath.Join(root, "none.txt"))
	var s *SourceError
	if !errors.As(err, &s) || !errors.Is(err, os.ErrNotExist) ||
		s.Source != fmt.Sprintf("%q", filepath.Join(root, "none.txt")) {
		t.Errorf("%v of %+v", err, s)
	}
	for spec, want := range map[string]string{
		"":                 `data: source "": empty spec; want a file, a folder, a glob, "synthetic" or "goroot"`,
		"synthetic:len=1":  `data: source "synthetic:len=1": synthetic: "len=1": want a whole number from 128 to 16777216`,
		"synthetic:seed=x": `data: source "synthetic:seed=x": synthetic: "seed=x": want a whole number, 0 or more`,
		"synthetic:a=1":    `data: source "synthetic:a=1": synthetic: "a=1": unknown option; want seed, docs, len, mix, needles, queries, asks or digits`,
		"synthetic:mix=o":  `data: source "synthetic:mix=o": synthetic: "mix=o": unknown kind "o"; want some of prose, facts, needle, kv, shots, arith, as in needle:4+prose:3`,
		"synthetic:mix=prose,facts": `data: source "synthetic:mix=prose,facts": synthetic: "facts": unknown option; want seed, docs, len, mix, needles, ` +
			`queries, asks or digits`,
	} {
		if _, err := Open(spec); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
