package hf

import (
	"iter"
	"strconv"
)

// layout is the geometry of a folder in transformers' terms: heads counts single query heads for DiffLlama too.
type layout struct {
	vocab, layers, dim, inner int
	heads, kvHeads, headDim   int
	bias, tied, diff          bool
}

// source is a tensor of the folder: [rows, cols], or the vector [rows] when cols is 0.
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

// part says what a parameter of ours is made of: pieces stacked in order. A source's row may be in several pieces;
// its gradient is then the sum over them.
type part struct {
	param  string
	pieces []piece
}

func (s source) all() piece { return piece{s, 0, s.rows} }

// parts is the whole correspondence, in the order of the parameter table. It is made on demand, layer by layer.
func (l layout) parts() iter.Seq[part] {
	return func(yield func(part) bool) {
		one := func(param, name string, rows, cols int) bool {
			return yield(part{param, []piece{source{name, rows, cols}.all()}})
		}
		if !one("embed.weight", "model.embed_tokens.weight", l.vocab, l.dim) {
			return
		}
		for i := range l.layers {
			for _, p := range l.block(strconv.Itoa(i)) {
				if !yield(p) {
					return
				}
			}
		}
		_ = one("norm.weight", "model.norm.weight", l.dim, 0) &&
			(l.tied || one("head.weight", "lm_head.weight", l.vocab, l.dim))
	}
}

// block is one layer's part of the table.
func (l layout) block(i string) []part {
	ours, theirs := "layers."+i+".", "model.layers."+i+"."
	whole := func(param, name string, rows, cols int) part {
		return part{ours + param, []piece{source{theirs + name, rows, cols}.all()}}
	}
	width := l.heads * l.headDim
	list := []part{
		whole("norm1.weight", "input_layernorm.weight", l.dim, 0),
		{ours + "attn.qkv.weight", l.qkv(theirs+"self_attn.", "weight", l.dim)},
	}
	if l.bias {
		list = append(list, part{ours + "attn.qkv.bias", l.qkv(theirs+"self_attn.", "bias", 0)})
	}
	if l.diff {
		for _, v := range []string{"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"} {
			list = append(list, whole("attn."+v, "self_attn."+v, l.headDim, 0))
		}
	}
	list = append(list, whole("attn.out.weight", "self_attn.o_proj.weight", l.dim, width))
	if l.bias {
		list = append(list, whole("attn.out.bias", "self_attn.o_proj.bias", l.dim, 0))
	}
	return append(list,
		whole("norm2.weight", "post_attention_layernorm.weight", l.dim, 0),
		part{ours + "mlp.gate_up.weight", []piece{
			source{theirs + "mlp.gate_proj.weight", l.inner, l.dim}.all(),
			source{theirs + "mlp.up_proj.weight", l.inner, l.dim}.all(),
		}},
		whole("mlp.down.weight", "mlp.down_proj.weight", l.dim, l.inner))
}

// qkv stacks [q | k | v]. A Llama's heads lie as ours do. DiffLlama keeps the two maps in the first and second half of its
// heads, where ours are neighbours: pair i is query heads (i, heads/2+i); a group's keys, and the two halves of its
// value, are the key and value heads that its pairs read.
func (l layout) qkv(attn, kind string, cols int) []piece {
	q := source{attn + "q_proj." + kind, l.heads * l.headDim, cols}
	k := source{attn + "k_proj." + kind, l.kvHeads * l.headDim, cols}
	v := source{attn + "v_proj." + kind, l.kvHeads * l.headDim, cols}
	if !l.diff {
		return []piece{q.all(), k.all(), v.all()}
	}
	head := func(s source, h int) piece { return piece{s, h * l.headDim, l.headDim} }
	var qs, ks, vs []piece
	for i := range l.heads / 2 {
		qs = append(qs, head(q, i), head(q, l.heads/2+i))
	}
	for g := range l.groups() {
		h1, h2 := l.readBy(g * (l.heads / 2 / l.groups()))
		ks = append(ks, head(k, h1), head(k, h2))
		vs = append(vs, head(v, h1), head(v, h2))
	}
	return append(append(qs, ks...), vs...)
}

// readBy is the two key heads of pair i: its query heads are i and heads/2+i, and each key head serves heads/kvHeads
// neighbouring query heads.
func (l layout) readBy(i int) (h1, h2 int) {
	each := l.heads / l.kvHeads
	return i / each, (l.heads/2 + i) / each
}

// groups is the number of our key/value groups of DiffLlama, whose pairs must all read the same two key heads. With an even number
// of key heads both indices step together and each head is in one group. With an odd number the second index
// steps half a head later than the first, so that groups are half as wide and heads are in several of them.
func (l layout) groups() int {
	if l.kvHeads%2 == 0 {
		return l.kvHeads / 2
	}
	return l.kvHeads
}
