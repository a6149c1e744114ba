package pair_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"antiphase/internal/safetensors"
	"antiphase/model"
	"antiphase/pair"
)

// Matrices of 16 columns or more are bytes, down to two rows; narrower ones and single rows are whole.
func TestPackedByShape(t *testing.T) {
	kinds := map[string]bool{}
	for _, dim := range []int{8, 16, 17} {
		c, err := model.Config{Arch: "diff2", Vocab: 260, Context: 8, Layers: 1, Dim: dim, Heads: 2, HeadDim: 2,
			FFN: 16}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int{}
		for _, p := range model.Table(c).List {
			sizes[p.Name] = p.Rows * p.Cols
		}
		m := standIn(t, "diff")
		m.Config, m.Values = c, func(name string) ([]float32, error) { return make([]float32, sizes[name]), nil }
		f, err := safetensors.Parse(written(t, m))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range model.Table(c).List {
			info, _ := f.Info(p.Name)
			kinds[fmt.Sprint(min(p.Rows, 3), "×", min(max(p.Cols, 15), 17))] = true
			if bytes := info.DType == safetensors.I8; bytes != (p.Rows >= 2 && p.Cols >= 16) {
				t.Errorf("%s of %d × %d is %s", p.Name, p.Rows, p.Cols, info.DType)
			}
		}
	}
	for _, k := range []string{"3×15", "3×16", "3×17", "2×15", "2×16", "2×17", "1×16", "1×17"} {
		if !kinds[k] {
			t.Errorf("no parameter is %s: %v", k, kinds)
		}
	}
}

// A parameter of another shape is refused with the shape it should have, also if it has as many values.
func TestParameterOfAnotherShape(t *testing.T) {
	f, err := safetensors.Parse(written(t, standIn(t, "diff")))
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Info("embed.weight")
	rows, cols := info.Shape[0], info.Shape[1]
	b, _ := f.Bytes("embed.weight")
	for _, shape := range [][]int{{cols, rows}, {rows * cols}, {rows, cols, 1}, {rows - 1, cols}, {rows, cols - 1}} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		file := rewritten(t, f, "embed.weight", nil,
			safetensors.FromBytes("embed.weight", safetensors.I8, shape, b[:n]))
		want := fmt.Sprintf(`pair: parameter "embed.weight" is missing or is not %d × %d`, rows, cols)
		if _, err := pair.Parse(file); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", shape, err, want)
		}
	}
}

// What is refused is said in whole sentences, by whoever opens or writes a model.
func TestWords(t *testing.T) {
	old := pair.Files
	defer func() { pair.Files = old }()
	m := standIn(t, "diff")
	m.Values = func(string) ([]float32, error) { return make([]float32, 3), nil }
	var sink strings.Builder
	err := pair.Write(&sink, m)
	p := model.Table(m.Config).List[0]
	if want := fmt.Sprintf("pair: %s has 3 values, the configuration wants %d × %d", p.Name, p.Rows,
		p.Cols); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	pair.Files = fstest.MapFS{"files/a.safetensors": {}, "files/b.safetensors": {}, "files/b.txt": {}}
	if _, err := pair.Open("c"); err == nil || err.Error() != `there is no model "c"; there are a, b` {
		t.Errorf("%v", err)
	}
	if _, err := pair.Open("b"); err == nil || !strings.HasPrefix(err.Error(), "pair: ") {
		t.Errorf("an empty file: %v", err)
	}
	lost := errors.New("lost")
	pair.Files = broken{lost}
	if _, err := pair.Open("c"); !errors.Is(err, lost) {
		t.Errorf("files that cannot be read: %v", err)
	}
}

// broken is a file system whose files cannot be opened.
type broken struct{ err error }

func (b broken) Open(string) (fs.File, error) { return nil, b.err }

// A disk that is full at any byte is an error of Write.
func TestWriteFails(t *testing.T) {
	m := standIn(t, "diff")
	n := len(written(t, m))
	for _, room := range []int{0, 8, 100, n / 2, n - 1} {
		if err := pair.Write(&full{room}, m); !errors.Is(err, errFull) {
			t.Errorf("room for %d of %d bytes: %v", room, n, err)
		}
	}
	if err := pair.Write(&full{n}, m); err != nil {
		t.Errorf("room for all: %v", err)
	}
}

var errFull = errors.New("no space left")

// full is a writer with room for some bytes.
type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	if f.room -= n; n < len(b) {
		return n, errFull
	}
	return n, nil
}
