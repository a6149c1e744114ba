package data

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// tens are n documents of ten tokens each, the end of text included.
func tens(n int) (s texts) {
	for i := range n {
		s.docs = append(s.docs, fmt.Sprintf("%09d", i))
	}
	return s
}

// A shard is filled to its bound exactly; a document longer than the bound has one for itself. A set ends with the
// document that reaches the bound of its tokens, in whichever source that is.
func TestBoundsAreReached(t *testing.T) {
	for bound, want := range map[int][]int64{30: {3, 3, 1}, 29: {2, 2, 2, 1}, 31: {3, 3, 1}, 70: {7}, 69: {6, 1},
		5: {1, 1, 1, 1, 1, 1, 1}} {
		var got []int64
		for _, s := range buildSet(t, tens(7), narrow, BuildOptions{ShardTokens: bound}).Manifest.Shards {
			got = append(got, s.Docs)
		}
		if !slices.Equal(got, want) {
			t.Errorf("shards of %d tokens hold %d documents, want %d", bound, got, want)
		}
	}
	for most, want := range map[int64][2]int64{1: {1, 0}, 10: {1, 0}, 11: {2, 0}, 70: {7, 0}, 71: {7, 1}, 100: {7, 3},
		101: {7, 4}, 999: {7, 5}} {
		dir := filepath.Join(t.TempDir(), "set")
		m, err := Build(t.Context(), dir, []Source{tens(7), tens(5)}, narrow, BuildOptions{MaxTokens: most})
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int64{m.Sources[0].Docs, m.Sources[1].Docs}; got != want || m.Tokens != 10*(want[0]+want[1]) {
			t.Errorf("at most %d tokens: %v documents and %d tokens, want %v", most, got, m.Tokens, want)
		}
	}
}

// Of many files of one kind the first are read and stand for the others, by their sizes.
func TestEstimateOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.txt", i)), []byte(strings.Repeat("words of text. ", 1000*(1+i%2))))
	}
	const all = 15 * (5*1000 + 5*2000)
	for _, most := range []int64{1, 15000, 15001, 45000, 1 << 40} {
		e, err := EstimateText(t.Context(), open(t, dir), most)
		if off := float64(e.Bytes)/all - 1; err != nil || !(math.Abs(off) <= 1e-3) || e.Whole != (most == 1<<40) {
			t.Errorf("reading %d bytes: %d, want %d; whole %v, %v", most, e.Bytes, all, e.Whole, err)
		}
	}
}

// A byte that no text has is named by its place in the file, also beyond the first block that is read; what looks like
// the mark of UTF-16 there is a document in another encoding.
func TestPlacesInLongTexts(t *testing.T) {
	const block = 32 << 10
	path := filepath.Join(t.TempDir(), "a.txt")
	for _, at := range []int{0, 1, block - 1, block, block + 7, 3*block + 1} {
		b := []byte(strings.Repeat("x", 4*block))
		b[at] = 0
		write(t, path, b)
		if _, err := readAll(t, path); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("byte %d is zero", at)) {
			t.Errorf("a zero at %d: %v", at, err)
		}
	}
	b := []byte(strings.Repeat("x", block-len(textBreak)) + textBreak + "\xff\xfe" + strings.Repeat("y", 50) +
		textBreak + "end")
	write(t, path, b)
	s := buildSet(t, open(t, path), narrow, BuildOptions{})
	if got := s.Manifest.Sources[0]; got.Docs != 2 || got.Skipped != (Skipped{NotUTF8: 1}) {
		t.Errorf("%+v", got)
	}
	for _, tail := range []string{"", "\r\n", "\n\n\r\n"} { // the marks of lines around a document are not its text
		write(t, path, []byte(bom+"\n"+"one\ntwo"+tail+textBreak+"\r\nthree"+tail))
		if got, _ := read(t, open(t, path)); !slices.Equal(got, []string{"one\ntwo", "three"}) {
			t.Errorf("%q: documents %q", tail, got)
		}
	}
}

// An early end is told from other damage: the advice is for files that can be fetched again.
func TestEarlyEndAdvises(t *testing.T) {
	const advice = "the file ends early: copy or download it again"
	for _, x := range []struct {
		err     error
		corrupt bool
		advised bool
	}{{io.ErrUnexpectedEOF, true, true}, {fmt.Errorf("x: %w", io.EOF), true, true}, {errors.New("bad"), true, false},
		{syscall.EIO, false, false}} {
		err := unreadable("f", x.err)
		var c *CorruptError
		if errors.As(err, &c) != x.corrupt || strings.Contains(err.Error(), advice) != x.advised ||
			!errors.Is(err, x.err) || !strings.HasPrefix(err.Error(), "data: f: ") {
			t.Errorf("%v became %v", x.err, err)
		}
	}
}

// Every option of the generator has its effect on documents, on both sides of its default.
func TestSyntheticOptionsHaveEffect(t *testing.T) {
	// most is the largest over documents of needles hidden, cities of the first question, single questions, and digits.
	most := func(opts string) (needles, queries, asks, least, digits int) {
		s := must(parseSynthetic(opts + ",mix=needle,len=2000"))
		least = 99
		for i := range 150 {
			body, questions, _ := strings.Cut(s.Document(i).Text, "\nWhich magic code")
			found := needleSentence.FindAllStringSubmatch(body, -1)
			needles = max(needles, len(found))
			for _, f := range found {
				digits, least = max(digits, len(f[2])), min(least, len(f[2]))
			}
			first, rest, _ := strings.Cut(questions, "\n")
			queries = max(queries, len(needleSentence.FindAllString(first, -1)))
			asks = max(asks, strings.Count("\n"+rest, "\nWhich magic code"))
		}
		return needles, queries, asks, least, digits
	}
	for opts, want := range map[string][5]int{
		"needles=1": {1, 1, 0, 2, 2}, "needles=4": {4, 2, 3, 2, 2}, "needles=9,queries=1,asks=1": {9, 1, 0, 2, 2},
		"needles=9,queries=5,asks=2": {9, 5, 1, 2, 2},
		"needles=9,asks=7":           {9, 2, 6, 2, 2}, "digits=5": {4, 2, 3, 5, 5},
	} {
		n, q, a, lo, hi := most(opts)
		if got := [5]int{n, q, a, lo, hi}; got != want {
			t.Errorf("%s: at most %d needles, %d queries, %d questions more, numbers of %d to %d digits; want %d", opts,
				n, q, a, lo, hi, want)
		}
	}
	for _, line := range strings.Split(must(parseSynthetic("mix=kv,digits=6")).Document(3).Text, "\n") {
		if _, value, _ := strings.Cut(line, " "); len(value) != 6 {
			t.Errorf("%q", line)
		}
	}
	if s := NewShots(rand.New(rand.NewPCG(1, 1)), ShotOptions{}); len(s.Labels) != 2 || len(s.Prompt) > 1024 ||
		len(s.Prompt) < 900 {
		t.Errorf("by default %d labels in %d bytes", len(s.Labels), len(s.Prompt))
	}
}

// A set that cannot be replaced stays: whichever operation of the exchange fails, the folder holds the old set or the
// new one, and once the fault is gone a build leaves nothing else.
func TestReplacingASetFails(t *testing.T) {
	build := func(fsys vfs.FS, n int) (*Manifest, error) {
		return Build(t.Context(), "/sets/a", []Source{tens(n)}, narrow, BuildOptions{FS: fsys})
	}
	renames := 0
	for at := 0; ; at++ {
		mem := vfstest.NewMem()
		old, err := build(mem, 3)
		if err != nil {
			t.Fatal(err)
		}
		hit := ""
		m, err := build(&vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Index != at {
				return nil
			}
			hit = op.String()
			return syscall.EIO
		}}, 5)
		if hit == "" {
			break
		}
		if strings.Contains(hit, "rename") {
			renames++
		}
		s, failed := OpenSetFS(mem, "/sets/a", true)
		switch {
		case failed != nil:
			t.Errorf("%s fails: no set is left: %v", hit, failed)
		case err == nil && s.Manifest.Hash != m.Hash, err != nil && s.Manifest.Docs != 3 && s.Manifest.Docs != 5:
			t.Errorf("%s fails: %d documents, %v", hit, s.Manifest.Docs, err)
		case err != nil && strings.Contains(hit, "rename") && s.Manifest.Hash != old.Hash:
			t.Errorf("%s fails: the old set is gone", hit)
		}
		if m, err = build(mem, 4); err != nil || m.Docs != 4 {
			t.Errorf("%s failed: %v", hit, err)
		}
		if names, err := mem.ReadDir("/sets"); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("%s failed: %q is left, %v", hit, names, err)
		}
	}
	if renames < 2 {
		t.Errorf("%d renames were tried", renames)
	}
}

// Passes over the text are tokens taken over tokens there are, in every order and to the fraction; of a mixture over
// all sources together, and over each.
func TestEpochsByCounting(t *testing.T) {
	set := mixedSet(t, []Share{{Weight: 3}, {Weight: 1}}, 900, 500)
	const B, T = 2, 7
	for name, l := range map[string]*Loader{
		"random": NewLoader(split(t, set, Train), B, T, 5), "stream": NewStream(split(t, set, Train), B, T, 5),
		"mixed": NewLoader(mix(t, set), B, T, 5),
	} {
		var drawn [2]int
		for n := range 300 {
			if got, want := l.Epoch(), float64(n*B*T)/1400; !(math.Abs(got-want) <= 1e-12) {
				t.Fatalf("%s, batch %d: %g passes, want %g", name, n, got, want)
			}
			each := l.Epochs(nil)
			if name != "mixed" {
				if len(each) != 0 {
					t.Fatalf("%s: %v", name, each)
				}
				next(l)
				continue
			}
			for i, tokens := range []float64{900, 500} {
				if want := float64(drawn[i]*T) / tokens; !(math.Abs(each[i]-want) <= 1e-12) {
					t.Fatalf("batch %d: %g passes over source %d, want %g", n, each[i], i, want)
				}
			}
			b := next(l)
			for r := range B {
				drawn[letterOf(t, b.inputs[r*T:(r+1)*T])]++
			}
		}
	}
}

// failing is an encoder that cannot encode one text.
type failing struct {
	byteEncoder
	err *error
}

func (e failing) EncodeOrdinary(dst []int32, text string) []int32 {
	if text == "poison" {
		*e.err = errors.New("no merges")
	}
	return e.byteEncoder.EncodeOrdinary(dst, text)
}

func (e failing) Err() error { return *e.err }

// A tokenizer that fails on a document ends the build with its error and the document's source.
func TestTokenizerFails(t *testing.T) {
	for text, want := range map[string]string{"fine": "", "poison": "tokenizer, on a document of texts: no merges"} {
		dir := t.TempDir()
		_, err := build(filepath.Join(dir, "set"), texts{docs: []string{"one", text, "two"}},
			failing{narrow, new(error)}, BuildOptions{Workers: 1})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil {
			onlyEntry(t, dir)
		}
	}
}
