package layer

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"antiphase/device"
	"antiphase/tensor"
)

// Kind determines a parameter's dtype and whether weight decay applies.
type Kind uint8

// Matrices decay; embeddings optionally; gains (norm weights), biases and the parameters of λ never. The vectors of λ
// are Stat. All others are Act, including DIFF V2's projection to λ, which is an operand of a product.
const (
	Matrix Kind = iota
	Embedding
	Gain
	Bias
	LambdaKind
	LambdaMatrix
)

// Param is one named weight with its gradient. Vectors are [1, Cols].
type Param struct {
	Name       string
	Kind       Kind
	Rows, Cols int
	Std        float64 // initial values: normal with this deviation,
	Const      float64 // around this mean
	W, Master  tensor.Tensor
	G          tensor.Tensor
	product    bool // a fresh pass overwrites its gradient
	Shared     bool // replicated on ranks that split the model; each has a share of its gradient
	cut        *cut // this rank's part; nil if whole
	group      *Group
}

// Shape is the shape of the whole parameter as files state it: vectors have one dimension.
func (p *Param) Shape() []int {
	rows, cols := p.Whole()
	if p.Kind == Gain || p.Kind == Bias || p.Kind == LambdaKind {
		return []int{cols}
	}
	return []int{rows, cols}
}

// Read reads the most precise values: the master if there is one.
func (p *Param) Read(d device.Device, dst []float32) {
	switch {
	case p.Master.Type == tensor.I16:
		device.ReadSplit(d, dst, p.W, p.Master)
	case p.Master.Ok():
		device.ReadFloats(d, dst, p.Master)
	default:
		device.ReadFloats(d, dst, p.W)
	}
}

// Group is a run of parameters with the same dtype and decay, flat in memory, so that the optimiser updates it in one
// launch.
type Group struct {
	Decay        bool
	Params       []*Param
	W, Master, G tensor.Tensor // [1, n]
	Elsewhere    bool          // its masters, of MasterType, are held by the optimiser
	MasterType   tensor.DType
}

// ParamSet is the parameter table. Constructors declare parameters in order; memory is allocated for all at once.
type ParamSet struct {
	List   []*Param
	Groups []*Group
	Split  *Split // set before layers are declared; nil if the model is not split
	prefix string
	byName map[string]*Param
	keep   func(p *Param, x []float32) // passes exact values to the holder of masters
}

// NewParamSet makes an empty table.
func NewParamSet() *ParamSet { return &ParamSet{byName: map[string]*Param{}} }

// Under prefixes the names of parameters that f declares.
func (s *ParamSet) Under(prefix string, f func()) {
	old := s.prefix
	s.prefix += prefix + "."
	f()
	s.prefix = old
}

// Add declares a parameter.
func (s *ParamSet) Add(p Param) *Param {
	p.Name = s.prefix + p.Name
	if s.byName[p.Name] != nil {
		panic("layer: parameter declared twice: " + p.Name)
	}
	q := &p
	s.List = append(s.List, q)
	s.byName[q.Name] = q
	return q
}

// Lookup finds a parameter by its full name.
func (s *ParamSet) Lookup(name string) *Param { return s.byName[name] }

// Count is the number of scalars.
func (s *ParamSet) Count() int {
	n := 0
	for _, p := range s.List {
		n += p.Rows * p.Cols
	}
	return n
}

// Memory selects what Alloc provides besides the weights.
type Memory struct {
	Train           bool // gradients, and master weights if Act is not Stat
	Master          bool // master weights even if Act is Stat (weights rounded to bf16 values)
	DecayEmbeddings bool
	Split           *Split // how ranks split the model; nil if they do not
	Elsewhere       bool   // masters are held by the optimiser, see ParamSet.Keep
	Multiple        int    // rounds each group's flat memory up to a multiple of this many elements; padding stays zero
}

// Alloc places every parameter in flat buffers on d.
func (s *ParamSet) Alloc(d device.Device, m Memory) {
	types := d.Types()
	s.Groups = nil
	for _, k := range []struct{ decay, stat bool }{{decay: true}, {}, {stat: true}} {
		g := &Group{Decay: k.decay}
		n := 0
		for _, p := range s.List {
			stat := p.Kind == LambdaKind
			decay := p.Kind == Matrix || p.Kind == Embedding && m.DecayEmbeddings
			if stat == k.stat && decay == k.decay {
				g.Params = append(g.Params, p)
				n += p.Room()
			}
		}
		if n == 0 {
			continue
		}
		if m.Multiple > 1 {
			n = (n + m.Multiple - 1) / m.Multiple * m.Multiple
		}
		dtype := types.Act
		if k.stat {
			dtype = types.Stat
		}
		s.Groups = append(s.Groups, g) // before memory is taken: Free finds what there is if it runs out
		g.W = device.Empty(d, dtype, 1, n)
		if m.Train {
			g.G = device.Empty(d, types.Stat, 1, n)
		}
		if m.Train && (m.Master && !k.stat || dtype != types.Stat) {
			if g.MasterType, g.Elsewhere = masterType(dtype, types.Stat), m.Elsewhere; !g.Elsewhere {
				g.Master = device.Empty(d, g.MasterType, 1, n)
			}
		}
	}
	for _, g := range s.Groups {
		g.place()
	}
}

// Share makes the weights of s those of from, a table with the same declarations. They stay the property of from.
func (s *ParamSet) Share(from *ParamSet) {
	for i, p := range s.List {
		p.W = from.List[i].W
	}
}

// up8 rounds a number of columns up to a multiple of 8: 16 bytes in bf16, the unit a GPU's matrix units load. Rows or
// sums that are not multiples of it lose two thirds of their speed.
func up8(cols int) int { return (cols + 7) &^ 7 }

// stride is the pitch of a row, a multiple of 8 elements. Padding columns are zero and stay zero.
func (p *Param) stride() int {
	if p.Rows == 1 {
		return p.Cols
	}
	return up8(p.Cols)
}

// Room is the memory of all rows in elements, rounded up so that each parameter starts on its own cache line, for any
// dtype.
func (p *Param) Room() int { return (p.Rows*p.stride() + 127) / 128 * 128 }

// In returns the parameter's part of its group's flat memory, or of another tensor with the same layout, where it
// begins at element at.
func (p *Param) In(flat tensor.Tensor, at int) tensor.Tensor {
	return flat.Slice(at, p.Rows, p.stride()).Columns(0, p.Cols)
}

// masterType is the dtype of masters: float32, or the lower 16 bits if the weights are the upper ones.
func masterType(weight, stat tensor.DType) tensor.DType {
	if weight == tensor.BF16 && stat == tensor.F32 {
		return tensor.I16
	}
	return stat
}

func (g *Group) place() {
	at := 0
	for _, p := range g.Params {
		p.W, p.group = p.In(g.W, at), g
		if g.G.Ok() {
			p.G = p.In(g.G, at)
		}
		if g.Master.Ok() {
			p.Master = p.In(g.Master, at)
		}
		at += p.Room()
	}
}

// shown returns t, one of the parameter's matrices, with cols columns: its own, or including padding.
func (p *Param) shown(t tensor.Tensor, cols int) tensor.Tensor {
	if cols != p.Cols && cols != p.stride() {
		panic(fmt.Sprintf("layer: %s has %d columns, %d with the zeros behind them; %d are asked for", p.Name, p.Cols,
			p.stride(), cols))
	}
	t.Cols = cols
	return t
}

// Init draws every parameter from its own stream of the seed, keyed by name. Two models with one seed start equal
// wherever parameters have the same name and shape.
func (s *ParamSet) Init(d device.Device, seed uint64) {
	for _, p := range s.List {
		h := fnv.New64a()
		fmt.Fprint(h, p.Name)
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		rows, cols := p.Whole()
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(p.Const)
			if p.Std > 0 {
				x[i] += float32(p.Std * r.NormFloat64())
			}
		}
		s.Set(d, p, p.Take(x))
	}
}

// Free releases the parameters' memory.
func (s *ParamSet) Free(d device.Device) {
	for _, g := range s.Groups {
		for _, t := range []tensor.Tensor{g.W, g.Master, g.G} {
			if t.Ok() {
				d.Free(t.Buf)
			}
		}
	}
	s.Groups = nil
}

// Keep registers f to receive the values passed to Set, for parameters whose masters are held elsewhere.
func (s *ParamSet) Keep(f func(p *Param, x []float32)) { s.keep = f }

// Set gives p new values, in both master and working copy.
func (s *ParamSet) Set(d device.Device, p *Param, x []float32) {
	if p.group.Elsewhere {
		if s.keep != nil {
			s.keep(p, x)
		}
		if p.group.MasterType == tensor.I16 {
			device.WriteHalf(d, p.W, x)
			return
		}
	}
	if p.Master.Type == tensor.I16 {
		device.WriteSplit(d, p.W, p.Master, x)
		return
	}
	if p.Master.Ok() {
		device.WriteFloats(d, p.Master, x)
	}
	device.WriteFloats(d, p.W, x)
}

// Round sets every working copy with a full master to the nearest bf16 values, as an update does.
func (s *ParamSet) Round(d device.Device) {
	for _, g := range s.Groups {
		exact := g.Master
		if g.Elsewhere {
			exact = g.W // as Set left it
		}
		if !exact.Ok() || g.MasterType == tensor.I16 {
			continue
		}
		half := device.Empty(d, tensor.BF16, 1, g.W.Cols)
		d.Copy(half, exact)
		d.Copy(g.W, half)
		d.Free(half.Buf)
	}
}

// ZeroGrad clears all gradients.
func (s *ParamSet) ZeroGrad(d device.Device) {
	for _, g := range s.Groups {
		d.Zero(g.G)
	}
}

// ZeroSums clears the gradients that a fresh pass accumulates into: all but those of the layers' matrices, which are
// most of the memory and are overwritten by one product each.
func (s *ParamSet) ZeroSums(d device.Device) {
	for _, g := range s.Groups {
		from, at := 0, 0
		for _, p := range g.Params {
			if p.product && p.Kind == Matrix {
				g.zero(d, from, at)
				from = at + p.Room()
			}
			at += p.Room()
		}
		g.zero(d, from, at)
	}
}

func (g *Group) zero(d device.Device, from, to int) {
	if from < to {
		d.Zero(g.G.Columns(from, to))
	}
}

// Span is the number of elements of the parameter in flat memory, without the padding after it.
func (p *Param) Span() int { return p.Rows * p.stride() }

// Packed is the number of the parameter's own elements among the first n of its flat memory.
func (p *Param) Packed(n int) int { return n/p.stride()*p.Cols + min(n%p.stride(), p.Cols) }

// Spread copies the parameter's own elements into the layout of flat memory, with zeros between rows.
func (p *Param) Spread(x []float32) []float32 {
	if p.stride() == p.Cols {
		return x
	}
	flat := make([]float32, p.Span())
	for r := range p.Rows {
		copy(flat[r*p.stride():], x[r*p.Cols:(r+1)*p.Cols])
	}
	return flat
}

// Pack copies the parameter's own elements out of a run of its flat memory that begins at element from.
func (p *Param) Pack(dst, flat []float32, from int) {
	for i := 0; i < len(flat); {
		col := (from + i) % p.stride()
		n := min(p.stride()-col, len(flat)-i)
		dst = dst[copy(dst, flat[i:i+max(min(n, p.Cols-col), 0)]):]
		i += n
	}
}
