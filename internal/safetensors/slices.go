package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"antiphase/internal/vfs"
)

// Slice describes which elements of a whole tensor one tensor of a file holds: elements [From, To) of the named rows
// and columns, row by row. A tensor of one dimension is a row.
type Slice struct {
	Of    string   `json:"of"` // name of the whole tensor
	Shape []int    `json:"shape"`
	Rows  [][2]int `json:"rows"` // [from, to)
	Cols  [][2]int `json:"cols"`
	From  int      `json:"from"`
	To    int      `json:"to"`
}

// slicesKey is the key of the metadata that holds the slices of a file by the names of its tensors.
const slicesKey = "antiphase.slices"

// SliceMeta is the metadata of a file that holds slices; nil without any.
func SliceMeta(slices map[string]Slice) (map[string]string, error) {
	if len(slices) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(slices)
	return map[string]string{slicesKey: string(b)}, err
}

// held is a slice in its file.
type held struct {
	Slice
	file   *File
	tensor string
}

// OpenSliced opens files that together hold whole tensors, possibly in slices, as one file. Its tensors are assembled
// when they are read, in new memory.
func OpenSliced(fsys vfs.FS, paths []string) (*File, error) {
	f := &File{path: "no file", head: &header{infos: map[string]Info{}}, data: []byte{}, parts: map[string][]held{}}
	var open []*File
	f.unmap = func() error {
		var err error
		for _, p := range open {
			err = errors.Join(err, p.Close())
		}
		return err
	}
	for _, path := range paths {
		p, err := OpenFS(fsys, path)
		if err == nil {
			open = append(open, p)
			f.path = filepath.Join(filepath.Dir(path), "*")
			err = f.include(p)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	for name, list := range f.parts {
		n := 0
		for _, h := range list {
			n += h.To - h.From
		}
		if want := elements(list[0].Shape); n != want {
			return nil, errors.Join(fmt.Errorf("safetensors %s: tensor %q has %d elements in %d slices, want %d",
				f.path, name, n, len(list), want), f.Close())
		}
	}
	return f, nil
}

// include adds a file's tensors.
func (f *File) include(p *File) error {
	slices := map[string]Slice{}
	if text, ok := p.Metadata()[slicesKey]; ok {
		if err := json.Unmarshal([]byte(text), &slices); err != nil {
			return fmt.Errorf("safetensors %s: %s: %w", p.path, slicesKey, err)
		}
	}
	for _, t := range p.Infos() {
		s, ok := slices[t.Name]
		if !ok {
			s = wholeSlice(t)
		}
		if err := s.check(t); err != nil {
			return fmt.Errorf("safetensors %s: tensor %q: %w", p.path, t.Name, err)
		}
		whole := Info{Name: s.Of, DType: t.DType, Shape: s.Shape}
		if first, ok := f.head.infos[s.Of]; !ok {
			whole.End, _ = byteSize(t.DType, s.Shape)
			f.head.infos[s.Of] = whole
			f.head.order = append(f.head.order, whole)
		} else if first.DType != t.DType || fmt.Sprint(first.Shape) != fmt.Sprint(s.Shape) {
			return fmt.Errorf("safetensors %s: tensor %q: a slice of %s%v, another is of %s%v", p.path, t.Name, t.DType,
				s.Shape, first.DType, first.Shape)
		}
		f.parts[s.Of] = append(f.parts[s.Of], held{s, p, t.Name})
	}
	return nil
}

// wholeSlice is a tensor that is not sliced.
func wholeSlice(t Info) Slice {
	rows, cols := matrix(t.Shape)
	return Slice{Of: t.Name, Shape: t.Shape, Rows: [][2]int{{0, rows}}, Cols: [][2]int{{0, cols}}, To: rows * cols}
}

// matrix is a shape as rows and columns.
func matrix(shape []int) (rows, cols int) {
	if len(shape) == 0 {
		return 1, 1
	}
	cols = shape[len(shape)-1]
	rows = 1
	for _, n := range shape[:len(shape)-1] {
		rows *= n
	}
	return rows, cols
}

func elements(shape []int) int {
	rows, cols := matrix(shape)
	return rows * cols
}

// check checks a slice against its tensor's length and the whole's bounds.
func (s Slice) check(t Info) error {
	if _, ok := byteSize(t.DType, s.Shape); !ok || s.From < 0 || s.To < s.From || s.To-s.From != elements(t.Shape) {
		return fmt.Errorf("elements [%d, %d) of %v are not its %v", s.From, s.To, s.Shape, t.Shape)
	}
	rows, cols := matrix(s.Shape)
	h, w := total(s.Rows, rows), total(s.Cols, cols)
	if h < 0 || w < 0 || s.To > h*w {
		return fmt.Errorf("rows %v, columns %v and end %d are not within %v", s.Rows, s.Cols, s.To, s.Shape)
	}
	return nil
}

// total is the length of runs, −1 if they are empty or not in order within n.
func total(runs [][2]int, n int) int {
	sum, end := 0, 0
	for _, r := range runs {
		if r[0] < end || r[1] <= r[0] && n > 0 || r[1] < r[0] || r[1] > n {
			return -1
		}
		sum, end = sum+r[1]-r[0], r[1]
	}
	return sum
}

// assemble joins a tensor's slices.
func (f *File) assemble(name string) ([]byte, error) {
	t := f.head.infos[name]
	size := t.DType.Size()
	out, seen := make([]byte, t.End), make([]bool, elements(t.Shape))
	_, width := matrix(t.Shape)
	for _, h := range f.parts[name] {
		src, err := h.file.Bytes(h.tensor)
		if err != nil {
			return nil, err
		}
		for run := range h.runs(width) {
			at, from, to := run[0], run[1], run[2]
			copy(out[at*size:], src[from*size:to*size])
			for k := at; k < at+to-from; k++ {
				if seen[k] {
					return nil, fmt.Errorf("safetensors %s: tensor %q: element %d is in two slices",
						h.file.path, name, k)
				}
				seen[k] = true
			}
		}
	}
	return out, nil
}

// runs yields where the slice's elements [from, to) begin in a whole tensor of this width: {at, from, to}. It takes no
// longer than the slice is, whatever rows and columns it claims to be of.
func (s Slice) runs(width int) iter.Seq[[3]int] {
	_, wide := matrix(s.Shape)
	w := total(s.Cols, wide)
	return func(yield func([3]int) bool) {
		i := 0 // index among the elements of the slice's rows and columns
		for _, r := range s.Rows {
			skip := min(max(s.From-i, 0)/max(w, 1), r[1]-r[0])
			i += skip * w
			for row := r[0] + skip; row < r[1] && i < s.To; row++ {
				for _, c := range s.Cols {
					from, to := max(i, s.From), min(i+c[1]-c[0], s.To)
					if from < to && !yield([3]int{row*width + c[0] + from - i, from - s.From, to - s.From}) {
						return
					}
					i += c[1] - c[0]
				}
			}
		}
	}
}
