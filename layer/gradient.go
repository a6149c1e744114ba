package layer

import (
	"strconv"

	"antiphase/tensor"
)

// Gradients calls f with views of the gradients of the layer's parameters and the name of their group: q and k (for
// heads with two maps q1, q2, k1, k2), v, o and lambda. ps are the parameters of its block; all its norms are in the
// group norm.
func (l *Attention) Gradients(ps []*Param, f func(group string, g tensor.Tensor)) {
	wq, wk, wv := l.widths()
	a, d := l.cfg.Arch, l.cfg.HeadDim
	for _, p := range ps {
		switch {
		case p == l.QKV.W:
			for q, m := range l.queryMaps() {
				f(mapName("q", a.Maps, m), p.G.RowRange(q*d, (q+1)*d))
			}
			for k := range wk / d {
				at := wq + k*d
				f(mapName("k", a.Keys, k%a.Keys), p.G.RowRange(at, at+d))
			}
			f("v", p.G.RowRange(wq+wk, wq+wk+wv))
		case p == l.Out.W:
			f("o", p.G)
		case p.Kind == LambdaKind || p.Kind == LambdaMatrix:
			f("lambda", p.G)
		case p.Kind == Gain:
			f("norm", p.G)
		}
	}
}

// queryMaps returns the map that each query head makes. Heads may share a query head.
func (l *Attention) queryMaps() []int {
	maps := make([]int, l.cfg.Arch.QueryHeads(l.cfg.Heads, l.cfg.Groups))
	for h := range l.cfg.Heads {
		for m := range l.cfg.Arch.Maps {
			maps[l.cfg.QueryHead(h, m)] = m
		}
	}
	return maps
}

// mapName appends the map's number to names that exist once per map.
func mapName(name string, maps, m int) string {
	if maps == 1 {
		return name
	}
	return name + strconv.Itoa(m+1)
}
