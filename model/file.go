package model

import (
	"fmt"
	"io"
	"slices"

	"antiphase/internal/safetensors"
	"antiphase/layer"
)

// Entries lists the table's tensors for a safetensors file; each is read from the device when it is written. read
// selects what is stored for a parameter: its values, or an optimiser moment.
func Entries(ps *layer.ParamSet, read func(p *layer.Param, dst []float32)) []safetensors.Entry {
	var list []safetensors.Entry
	for _, p := range ps.List {
		list = append(list, safetensors.Entry{Name: p.Name, DType: "F32", Shape: p.Shape(),
			WriteTo: func(w io.Writer) error {
				x := make([]float32, p.Rows*p.Cols)
				read(p, x)
				return safetensors.FromFloat32s(p.Name, "F32", p.Shape(), x).WriteTo(w)
			}})
	}
	return list
}

// Save writes all weights as safetensors in float32, under the table's names.
func (n *network) Save(w io.Writer, meta map[string]string) error {
	return safetensors.Write(w, Entries(n.Params, func(p *layer.Param, dst []float32) { p.Read(n.dev, dst) }), meta)
}

// Load reads weights that Save wrote. Every parameter must be there in its shape, and nothing else.
func (n *network) Load(f *safetensors.File) error {
	return Restore(f, n.Params, func(p *layer.Param, x []float32) { n.Params.Set(n.dev, p, x) })
}

// CheckFile checks a file against the table: every tensor is a parameter, and every parameter is present with its
// shape.
func CheckFile(f *safetensors.File, ps *layer.ParamSet) error {
	for _, name := range f.Names() {
		if ps.Lookup(name) == nil {
			return fmt.Errorf("tensor %q is not a parameter of this model", name)
		}
	}
	for _, p := range ps.List {
		info, ok := f.Info(p.Name)
		if !ok {
			return fmt.Errorf("tensor %q is missing", p.Name)
		}
		if !slices.Equal(info.Shape, p.Shape()) {
			return fmt.Errorf("tensor %q has shape %v, the model wants %v", p.Name, info.Shape, p.Shape())
		}
	}
	return nil
}

// Restore reads one tensor per parameter and passes it to set.
func Restore(f *safetensors.File, ps *layer.ParamSet, set func(*layer.Param, []float32)) error {
	if err := CheckFile(f, ps); err != nil {
		return err
	}
	for _, p := range ps.List {
		x, err := f.Float32s(p.Name)
		if err != nil {
			return err
		}
		set(p, p.Take(x))
	}
	return nil
}
