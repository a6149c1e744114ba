package hf

import (
	"fmt"
	"io"
	"math"
	"slices"

	"antiphase/internal/safetensors"
)

// target is a tensor to be written: rows of one of our parameters, followed by functions that fold other parameters
// into it.
type target struct {
	source
	param string
	spans []span
	exact bool // always stored in float32
	fold  []func(x []float32) error
}

// span maps n rows of the parameter, starting at row at, to the tensor's rows starting at row from.
type span struct{ at, from, n int }

// targets inverts the layout's table: every tensor, with the rows of the parameter it comes from.
func (e *Export) targets(class Class) ([]*target, error) {
	l, err := exportLayout(e.Config, class)
	if err != nil {
		return nil, err
	}
	var list []*target
	byName := map[string]*target{}
	for p := range l.parts() {
		at := 0
		for _, q := range p.pieces {
			t := byName[q.name]
			if t == nil {
				t = &target{source: q.source, param: p.param, exact: isLambda(q.name)}
				byName[q.name] = t
				list = append(list, t)
			}
			t.spans = append(t.spans, span{at, q.from, q.n})
			at += q.n
		}
	}
	if class == DiffLlama {
		e.fold(byName)
	}
	return list, nil
}

// values assembles the tensor.
func (t *target) values(get Values) ([]float32, error) {
	p, err := get(t.param)
	if err != nil {
		return nil, err
	}
	w := t.width()
	x := make([]float32, t.rows*w)
	for _, s := range t.spans {
		if len(p) < (s.at+s.n)*w {
			return nil, fmt.Errorf("parameter %q has %d values, too few for %q", t.param, len(p), t.name)
		}
		copy(x[s.from*w:], p[s.at*w:(s.at+s.n)*w])
	}
	for _, f := range t.fold {
		if err := f(x); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// entry is the tensor for a safetensors file; its values are read when they are written.
func (t *target) entry(get Values, dtype safetensors.DType) safetensors.Entry {
	if t.exact {
		dtype = safetensors.F32
	}
	return safetensors.Entry{Name: t.name, DType: dtype, Shape: t.shape(), WriteTo: func(w io.Writer) error {
		x, err := t.values(get)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(x, beyondHalf); dtype == safetensors.F16 && i >= 0 {
			return fmt.Errorf("value %g is beyond float16; bfloat16 and float32 hold it", x[i])
		}
		return safetensors.FromFloat32s(t.name, dtype, t.shape(), x).WriteTo(w)
	}}
}

// beyondHalf reports whether a finite value would become infinite in float16, whose largest is 65504.
func beyondHalf(x float32) bool {
	return !math.IsInf(float64(x), 0) && math.Abs(float64(x)) >= 65520
}

// shards distributes the tensors, in the model's order, over as few files of ShardBytes as possible, with an index if
// there are several.
func (e *Export) shards(targets []*target, dtype safetensors.DType) ([]file, error) {
	limit := e.ShardBytes
	if limit <= 0 {
		limit = ShardBytes
	}
	get := remember(e.Values)
	var groups [][]safetensors.Entry
	var total, room int64
	for _, t := range targets {
		entry := t.entry(get, dtype)
		n := int64(entry.DType.Size()) * int64(t.rows) * int64(t.width())
		if n > room || len(groups) == 0 {
			groups, room = append(groups, nil), limit
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], entry)
		room -= n
		total += n
	}
	if len(groups) == 1 {
		return []file{weightFile(weightsFile, groups[0])}, nil
	}
	var list []file
	weightMap := map[string]string{}
	for i, group := range groups {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(groups))
		list = append(list, weightFile(name, group))
		for _, entry := range group {
			weightMap[entry.Name] = name
		}
	}
	index, err := indented(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": weightMap})
	return append(list, file{indexFile, index}), err
}

func weightFile(name string, entries []safetensors.Entry) file {
	return file{name, func(w io.Writer) error {
		return safetensors.Write(w, entries, map[string]string{"format": "pt"}) // transformers requires this metadata
	}}
}

// remember caches the last parameter, because a fused one is divided into several tensors.
func remember(get Values) Values {
	var name string
	var x []float32
	return func(want string) ([]float32, error) {
		if want == name && x != nil {
			return x, nil
		}
		v, err := get(want)
		if err == nil {
			name, x = want, v
		}
		return v, err
	}
}
