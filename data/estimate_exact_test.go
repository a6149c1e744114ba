package data

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// What is read whole is counted exactly, in every kind of file; of a generator the mean of what was read counts for
// every document. A sample is enough text to measure a tokenizer on, and not much more.
func TestEstimateExactly(t *testing.T) {
	dir := t.TempDir()
	list := []string{"one", "two words", strings.Repeat("é", 1000)}
	var lines strings.Builder
	var rows []row
	size := int64(0)
	for _, x := range list {
		rows = append(rows, row{1, x})
		fmt.Fprintf(&lines, "{\"text\":%q}\n", x)
		size += int64(len(x))
	}
	lines.WriteString("{\"text\":\"  \"}\n") // dropped, and not counted
	write(t, filepath.Join(dir, "a.jsonl"), []byte(lines.String()))
	write(t, filepath.Join(dir, "b.jsonl.gz"), gz([]byte(lines.String())))
	write(t, filepath.Join(dir, "c.txt"), []byte(strings.Join(list, textBreak)))
	write(t, filepath.Join(dir, "d.parquet"), parquetOf(t, rows))
	for spec, want := range map[string]int64{"a.jsonl": size, "b.jsonl.gz": size, "c.txt": size, "d.parquet": size,
		".": 4 * size} {
		e, err := EstimateText(t.Context(), open(t, filepath.Join(dir, spec)), 1<<30)
		if err != nil || e.Bytes != want || !e.Whole || len(e.Sample) != int(want) {
			t.Errorf("%s: %d bytes, whole %v, a sample of %d, %v; want %d", spec, e.Bytes, e.Whole,
				len(e.Sample), err, want)
		}
	}
	g := open(t, "synthetic:docs=50,len=4000").(*Synthetic)
	all, some, docs := int64(0), int64(0), int64(0)
	for i := range g.Docs {
		n := int64(len(g.Document(i).Text))
		if all += n; some < 20000 {
			some, docs = some+n, docs+1
		}
	}
	e, err := EstimateText(t.Context(), g, 1<<30)
	if err != nil || e.Bytes != all || !e.Whole {
		t.Errorf("all of it: %+v bytes, whole %v, %v; want %d", e.Bytes, e.Whole, err, all)
	}
	e, err = EstimateText(t.Context(), g, 20000)
	if err != nil || e.Bytes != some/docs*50 || e.Whole || len(e.Sample) != int(some) {
		t.Errorf("some of it: %d bytes, whole %v, %v; want %d", e.Bytes, e.Whole, err, some/docs*50)
	}
	some, all = 5, 10 // a source of another kind says nothing of what was not read
	for most, whole := range map[int64]bool{1: false, 5: false, 11: true} {
		want := map[bool]int64{false: some, true: all}[whole]
		if e, err := EstimateText(t.Context(), texts{docs: []string{"12345", "67890"}}, most); err != nil ||
			e.Bytes != want || e.Whole != whole {
			t.Errorf("%d bytes of two texts: %d, whole %v, %v; want %d", most, e.Bytes, e.Whole, err, want)
		}
	}
	if e, err := EstimateText(t.Context(), texts{docs: []string{strings.Repeat("x", 3*sampleBytes)}},
		1<<30); err != nil || e.Bytes != 3*sampleBytes || len(e.Sample) != sampleBytes {
		t.Errorf("a long text: %d bytes, a sample of %d, %v", e.Bytes, len(e.Sample), err)
	}
	write(t, filepath.Join(dir, "d.txt"), []byte(strings.Repeat(strings.Repeat("x", 60_000)+textBreak, 40)))
	e, err = EstimateText(t.Context(), open(t, filepath.Join(dir, "d.txt")), 1<<30)
	if err != nil || e.Bytes != 40*60_000 || len(e.Sample) < sampleBytes || len(e.Sample) > sampleBytes+60_000 {
		t.Errorf("%d bytes, a sample of %d, %v", e.Bytes, len(e.Sample), err)
	}
}

// A folder of two kinds is exact if both were read whole; either may be the one that was cut.
func TestEstimateOfKinds(t *testing.T) {
	long, short := prose(100_000), []byte("short")
	for _, c := range []struct {
		a, b  []byte
		whole bool
	}{{short, short, true}, {long, short, false}, {short, long, false}, {long, long, false}} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.txt"), c.a)
		write(t, filepath.Join(dir, "b.txt.gz"), gz(c.b))
		e, err := EstimateText(t.Context(), open(t, dir), 1<<20)
		if err != nil || e.Whole != c.whole {
			t.Errorf("%d and %d bytes of text: whole %v, %v; want %v", len(c.a), len(c.b), e.Whole, err, c.whole)
		}
	}
}

// Of every kind of file a part tells how much text the whole has. In parquet that goes by rows: nulls and other columns
// take their part.
func TestEstimateOfEveryKind(t *testing.T) {
	type optional struct {
		ID   int64   `parquet:"id"`
		Text *string `parquet:"text,optional"`
	}
	var lines strings.Builder
	var rows []row
	var sparse []optional
	size := 0
	for i := range 500 {
		x := fmt.Sprintf("document %x and %x", i*i, i*7919)
		size += len(x)
		fmt.Fprintf(&lines, "{\"text\":%q}\n", x)
		rows = append(rows, row{int64(i), x})
		sparse = append(sparse, optional{int64(i), &x}, optional{})
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"a.jsonl": []byte(strings.Repeat(lines.String(), 50)),
		"a.parquet": parquetOf(t, rows), "b.parquet": parquetOf(t, sparse)} {
		path, size := filepath.Join(dir, name), size
		if write(t, path, b); name == "a.jsonl" { // longer than what is read ahead
			size *= 50
		}
		for _, most := range []int64{int64(size / 2), int64(size - 1), 1 << 40} {
			e, err := EstimateText(t.Context(), open(t, path), most)
			if off := float64(e.Bytes)/float64(size) - 1; err != nil || !(math.Abs(off) < 0.25) || most > int64(size) &&
				(off != 0 || !e.Whole) {
				t.Errorf("%s: reading %d of %d bytes gives %d, whole %v, %v", name, most, size, e.Bytes, e.Whole, err)
			}
		}
	}
	two := t.TempDir()
	write(t, filepath.Join(two, "a.parquet"), parquetOf(t, rows))
	write(t, filepath.Join(two, "b.parquet"), parquetOf(t, rows))
	e, err := EstimateText(t.Context(), open(t, two), 1000)
	if off := float64(e.Bytes)/float64(2*size) - 1; err != nil || !(math.Abs(off) < 0.15) || e.Whole {
		t.Errorf("reading 1000 of twice %d bytes gives %d, whole %v, %v", size, e.Bytes, e.Whole, err)
	}
}

// What is said to be whole is exact, however little text was asked for and in whatever kinds of files it is: a reader
// may have read a file to its end although its text was wanted in part.
func TestWholeEstimatesAreExact(t *testing.T) {
	for _, docs := range []int{1, 2, 3, 40, 1000} {
		dir := t.TempDir()
		var lines, text strings.Builder
		var rows []row
		size := 0
		for i := range docs {
			x := fmt.Sprintf("Dokument %x für %x", i, i*i*7919)
			fmt.Fprintf(&lines, "{\"text\":%q}\n", x)
			text.WriteString(x + textBreak)
			rows, size = append(rows, row{int64(i), x}), size+len(x)
		}
		jsonl, txt := []byte(lines.String()), []byte(text.String())
		all := map[string][]byte{"a.jsonl": jsonl, "a.jsonl.gz": gz(jsonl), "a.jsonl.zst": zst(jsonl), "a.txt": txt,
			"a.txt.gz": gz(txt), "a.md.zst": zst(txt), "a.parquet": parquetOf(t, rows)}
		for name, b := range all {
			write(t, filepath.Join(dir, name), b)
		}
		for name := range all {
			for _, most := range []int64{1, int64(size / 2), int64(size), int64(size + 1)} {
				e, err := EstimateText(t.Context(), open(t, filepath.Join(dir, name)), most)
				if err != nil || e.Whole && e.Bytes != int64(size) || !e.Whole &&
					(most > int64(size) || name != "a.parquet" && docs < 1000) {
					t.Errorf("%s of %d documents, %d bytes of %d: %d, whole %v, %v", name, docs, most, size,
						e.Bytes, e.Whole, err)
				}
			}
		}
		for most := range int64(9) { // less than a byte of each kind
			e, err := EstimateText(t.Context(), open(t, dir), most)
			if off := float64(e.Bytes)/float64(len(all)*size) - 1; err != nil || !(math.Abs(off) < 0.2) {
				t.Errorf("%d documents of every kind, %d bytes: %+.2f off, %v", docs, most, off, err)
			}
		}
	}
}
