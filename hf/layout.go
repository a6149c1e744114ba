package hf

import (
	"iter"
	"strconv"
	"strings"

	"antiphase/layer"
	"antiphase/model"
)

// layout is the geometry of a folder in transformers' terms: heads counts single query heads for DiffLlama too.
type layout struct {
	vocab, layers, dim, inner int
	heads, kvHeads, headDim   int
	values, out               int // widths of the value projection and of all heads' output, in units of headDim
	bias, tied                bool

	halves bool     // a pair's two maps are in the first and second half of the heads (DiffLlama), not adjacent
	relay  bool     // rotation pairs adjacent rows in ours and halves in the folder's
	extras []source // further tensors of attention, by our names below attn.; files use the names of theirs
	names  naming
}

// naming is how files spell the names that vary.
type naming struct {
	root string // before everything but the output projection
	out  string // the attention's output projection
}

var llamaNames = naming{root: "model.", out: "o_proj"}

// theirs is the name of a further attention tensor in the authors' released code.
func theirs(extra string) string {
	switch extra {
	case "head_norm.weight":
		return "subln.weight"
	case "lambda.weight":
		return "lambda_proj.weight"
	}
	return extra
}

// source is a tensor of the folder: [rows, cols], or the vector [rows] if cols is 0.
type source struct {
	name       string
	rows, cols int
}

func (s source) shape() []int {
	if s.cols == 0 {
		return []int{s.rows}
	}
	return []int{s.rows, s.cols}
}

// width is the number of values in a row.
func (s source) width() int { return max(s.cols, 1) }

// piece is the rows [from, from+n) of a source.
type piece struct {
	source
	from, n int
}

// part lists the pieces that make up one of our parameters, stacked in order. A source's row may be in several pieces;
// its gradient is then the sum over them.
type part struct {
	param  string
	pieces []piece
}

func (s source) all() piece { return piece{s, 0, s.rows} }

// canonical is the layout with our order of heads: that of the authors' released modules, and of our own class.
func canonical(c model.Config, n naming) (layout, error) {
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		return layout{}, err
	}
	return layout{
		vocab: c.Vocab, layers: c.Layers, dim: c.Dim, inner: c.FFN, headDim: c.HeadDim, bias: c.Bias, tied: c.TieEmbed,
		heads: a.QueryHeads(c.Heads, c.KVHeads), kvHeads: c.KVHeads * a.Keys, values: c.KVHeads * a.Values,
		out:    c.Heads * a.Values,
		extras: extras(c), names: n,
	}, nil
}

// extras lists the attention tensors of a configuration besides its projections, from the parameter table of one layer.
func extras(c model.Config) (list []source) {
	c.Layers = 1
	for _, p := range model.Table(c).List {
		name, ok := strings.CutPrefix(p.Name, "layers.0.attn.")
		if !ok || strings.HasPrefix(name, "qkv.") || strings.HasPrefix(name, "out.") {
			continue
		}
		if s := p.Shape(); len(s) == 1 {
			list = append(list, source{name, s[0], 0})
		} else {
			list = append(list, source{name, s[0], s[1]})
		}
	}
	return list
}

// parts is the whole correspondence, in the order of the parameter table. It is computed on demand, layer by layer.
func (l layout) parts() iter.Seq[part] {
	return func(yield func(part) bool) {
		one := func(param, name string, rows, cols int) bool {
			return yield(part{param, []piece{source{name, rows, cols}.all()}})
		}
		if !one("embed.weight", l.names.root+"embed_tokens.weight", l.vocab, l.dim) {
			return
		}
		for i := range l.layers {
			for _, p := range l.block(strconv.Itoa(i)) {
				if !yield(p) {
					return
				}
			}
		}
		_ = one("norm.weight", l.names.root+"norm.weight", l.dim, 0) &&
			(l.tied || one("head.weight", "lm_head.weight", l.vocab, l.dim))
	}
}

// block is one layer's part of the table.
func (l layout) block(i string) []part {
	ours, file := "layers."+i+".", l.names.root+"layers."+i+"."
	whole := func(param, name string, rows, cols int) part {
		return part{ours + param, []piece{source{file + name, rows, cols}.all()}}
	}
	list := []part{
		whole("norm1.weight", "input_layernorm.weight", l.dim, 0),
		{ours + "attn.qkv.weight", l.qkv(file+"self_attn.", "weight", l.dim)},
	}
	if l.bias {
		list = append(list, part{ours + "attn.qkv.bias", l.qkv(file+"self_attn.", "bias", 0)})
	}
	for _, x := range l.extras {
		list = append(list, whole("attn."+x.name, "self_attn."+theirs(x.name), x.rows, x.cols))
	}
	list = append(list, whole("attn.out.weight", "self_attn."+l.names.out+".weight", l.dim, l.out*l.headDim))
	if l.bias {
		list = append(list, whole("attn.out.bias", "self_attn."+l.names.out+".bias", l.dim, 0))
	}
	return append(list,
		whole("norm2.weight", "post_attention_layernorm.weight", l.dim, 0),
		part{ours + "mlp.gate_up.weight", []piece{
			source{file + "mlp.gate_proj.weight", l.inner, l.dim}.all(),
			source{file + "mlp.up_proj.weight", l.inner, l.dim}.all(),
		}},
		whole("mlp.down.weight", "mlp.down_proj.weight", l.dim, l.inner))
}

// qkv stacks [q | k | v]. Llama's heads are in our order. DiffLlama stores the two maps in the first and second half of
// its heads, where ours are adjacent: pair i is query heads (i, heads/2+i). A group's keys, and the two halves of its
// value, are the key and value heads that its pairs read.
func (l layout) qkv(attn, kind string, cols int) []piece {
	q := source{attn + "q_proj." + kind, l.heads * l.headDim, cols}
	k := source{attn + "k_proj." + kind, l.kvHeads * l.headDim, cols}
	v := source{attn + "v_proj." + kind, l.values * l.headDim, cols}
	if !l.halves {
		list := append(l.turned(q.all()), l.turned(k.all())...)
		return append(list, v.all())
	}
	head := func(s source, h int) piece { return piece{s, h * l.headDim, l.headDim} }
	var qs, ks, vs []piece
	for i := range l.heads / 2 {
		qs = append(append(qs, l.turned(head(q, i))...), l.turned(head(q, l.heads/2+i))...)
	}
	for g := range l.groups() {
		h1, h2 := l.readBy(g * (l.heads / 2 / l.groups()))
		ks = append(append(ks, l.turned(head(k, h1))...), l.turned(head(k, h2))...)
		vs = append(vs, head(v, h1), head(v, h2))
	}
	return append(append(qs, ks...), vs...)
}

// turned permutes the rows of heads whose rotation pairs (2j, 2j+1) in ours and (j, d/2+j) in the folder's. The product
// of a query and a key does not depend on the order, as long as both have the same.
func (l layout) turned(p piece) []piece {
	if !l.relay {
		return []piece{p}
	}
	list := make([]piece, 0, p.n)
	for at := p.from; at < p.from+p.n; at += l.headDim {
		for j := range l.headDim / 2 {
			list = append(list, piece{p.source, at + j, 1}, piece{p.source, at + l.headDim/2 + j, 1})
		}
	}
	return list
}

// readBy returns the two key heads of pair i: its query heads are i and heads/2+i, and each key head serves
// heads/kvHeads adjacent query heads.
func (l layout) readBy(i int) (h1, h2 int) {
	each := l.heads / l.kvHeads
	return i / each, (l.heads/2 + i) / each
}

// groups is the number of our key/value groups for DiffLlama; all pairs of a group must read the same two key heads.
// With an even number of key heads both indices step together and each head is in one group. With an odd number the
// second index steps half a head later than the first, so groups are half as wide and heads are in several of them.
func (l layout) groups() int {
	if l.kvHeads%2 == 0 {
		return l.kvHeads / 2
	}
	return l.kvHeads
}
