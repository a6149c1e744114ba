package safetensors

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"antiphase/internal/half"
	"antiphase/internal/vfs"
)

// File is an open safetensors file. It may be read by several goroutines at once; Close ends every view.
type File struct {
	path  string
	head  *header
	data  []byte // the tensors' bytes: the mapping after the header; nil once closed
	unmap func() error
	parts map[string][]held // of a file that consists of several, see OpenSliced
}

// Open maps the file at path and checks its header. The file must not be truncated while it is open: views refer to the
// mapping, and touching a missing page ends the process. Replace files by rename.
func Open(path string) (*File, error) { return OpenFS(vfs.OS{}, path) }

// OpenFS is Open on a file system.
func OpenFS(fsys vfs.FS, path string) (*File, error) {
	b, unmap, err := fsys.Map(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Parse(b)
	if err != nil {
		unmap()
		return nil, fmt.Errorf("safetensors %s: %w", path, err)
	}
	f.path, f.unmap = path, unmap
	return f, nil
}

// Parse checks b as a complete safetensors file; the result's views refer to b.
func Parse(b []byte) (*File, error) {
	h, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	return &File{path: "in memory", head: h, data: b[h.start:], unmap: func() error { return nil }}, nil
}

// Close ends the mapping; earlier views must not be used afterwards.
func (f *File) Close() error {
	unmap := f.unmap
	f.data, f.unmap = nil, func() error { return nil }
	if err := unmap(); err != nil {
		return fmt.Errorf("safetensors %s: %w", f.path, err)
	}
	return nil
}

// Names returns the tensors' names, sorted.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.head.infos)) }

// Infos returns the tensors in the order of their bytes in the file.
func (f *File) Infos() []Info { return f.head.order }

// Info describes the tensor name; false if the file has none of that name.
func (f *File) Info(name string) (Info, bool) {
	t, ok := f.head.infos[name]
	return t, ok
}

// Metadata returns the free text of the header, nil if there is none.
func (f *File) Metadata() map[string]string { return f.head.meta }

// Bytes returns a read-only view of a tensor's bytes, valid until Close; slices are assembled.
func (f *File) Bytes(name string) ([]byte, error) {
	t, ok := f.Info(name)
	if !ok {
		return nil, fmt.Errorf("safetensors %s: no tensor %q", f.path, name)
	}
	if f.data == nil {
		return nil, fmt.Errorf("safetensors %s: tensor %q: the file is closed", f.path, name)
	}
	if f.parts != nil {
		return f.assemble(name)
	}
	return f.data[t.Begin:t.End:t.End], nil
}

// Float32s returns a tensor of F64, F32, F16 or BF16 in new memory; F64 is rounded to nearest.
func (f *File) Float32s(name string) ([]float32, error) { return floats[float32](f, name) }

// Float64s returns a tensor of F64, F32, F16 or BF16 in new memory, exactly.
func (f *File) Float64s(name string) ([]float64, error) { return floats[float64](f, name) }

func floats[T float32 | float64](f *File, name string) ([]T, error) {
	b, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	switch d := f.head.infos[name].DType; d {
	case F64:
		return convert(b, 8, func(b []byte) T { return T(math.Float64frombits(binary.LittleEndian.Uint64(b))) }), nil
	case F32:
		return convert(b, 4, func(b []byte) T { return T(math.Float32frombits(binary.LittleEndian.Uint32(b))) }), nil
	case F16:
		return convert(b, 2, func(b []byte) T { return T(half.F16ToF32(binary.LittleEndian.Uint16(b))) }), nil
	case BF16:
		return convert(b, 2, func(b []byte) T { return T(half.BF16ToF32(binary.LittleEndian.Uint16(b))) }), nil
	default:
		return nil, fmt.Errorf("safetensors %s: tensor %q is %s, not a float type (F64, F32, F16, BF16)",
			f.path, name, d)
	}
}

// Int64s returns a tensor of I64, I32, I16, I8, U32, U16, U8 or BOOL in new memory.
func (f *File) Int64s(name string) ([]int64, error) {
	b, err := f.Bytes(name)
	if err != nil {
		return nil, err
	}
	switch d := f.head.infos[name].DType; d {
	case I64:
		return convert(b, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }), nil
	case I32:
		return convert(b, 4, func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) }), nil
	case U32:
		return convert(b, 4, func(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }), nil
	case I16:
		return convert(b, 2, func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) }), nil
	case U16:
		return convert(b, 2, func(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) }), nil
	case I8:
		return convert(b, 1, func(b []byte) int64 { return int64(int8(b[0])) }), nil
	case U8, Bool:
		return convert(b, 1, func(b []byte) int64 { return int64(b[0]) }), nil
	default:
		return nil, fmt.Errorf("safetensors %s: tensor %q is %s, not an integer type that fits int64", f.path, name, d)
	}
}

// convert reads len(b)/size elements.
func convert[T any](b []byte, size int, read func([]byte) T) []T {
	out := make([]T, len(b)/size)
	for i := range out {
		out[i] = read(b[i*size:])
	}
	return out
}
