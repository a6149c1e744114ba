package model

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// groupOf is the group of a parameter by its name; empty for a bias, qkv for what is several.
func groupOf(name string) string {
	for _, x := range [][2]string{{"bias", ""}, {"norm", "norm"}, {"lambda", "lambda"}, {"qkv", "qkv"},
		{"attn.out", "o"}, {"mlp", "mlp"}} {
		if strings.Contains(name, x[0]) {
			return x[1]
		}
	}
	return "embed"
}

// squares is the squared norm of the gradients of every group by the names of parameters, of layer l or of all (l < 0).
// Queries, keys and values are one.
func squares(m *Model, l int) (sum map[string]float64, count map[string]int) {
	sum, count = map[string]float64{}, map[string]int{}
	for _, p := range m.Params.List {
		group := groupOf(p.Name)
		if group == "" || l >= 0 && !strings.HasPrefix(p.Name, fmt.Sprintf("layers.%d.", l)) {
			continue
		}
		for _, g := range gradient(p) {
			sum[group] += g * g
			count[group]++
		}
	}
	return sum, count
}

// The groups of all layers, and those of each layer alone, have the gradients of their parameters and no others.
func TestGradientGroups(t *testing.T) {
	for name, c := range configs(t) {
		c.Layers = 3
		m := newModel(t, ref.New(), c)
		m.Params.ZeroGrad(m.Device())
		if err := m.Backprop(batch(rand.New(rand.NewPCG(1, 2)), c, 2, 9), 1); err != nil {
			t.Fatal(err)
		}
		for l := -1; l < 3; l++ {
			n := m.NewGradientNorms(m.GradientGroups(l))
			n.Read(nil) // each reading is of the gradients alone, not of earlier readings
			sum, count, seen := map[string]float64{}, map[string]int{}, map[string]bool{}
			for i, x := range n.Read([]float64{42})[1:] {
				group := n.Groups[i].Name
				if seen[group] || x <= 0 && group != "lambda" {
					t.Errorf("%s, layer %d: %s is there twice, or has no gradient", name, l, group)
				}
				seen[group] = true
				if strings.ContainsAny(group[:1], "qkv") {
					group = "qkv"
				}
				sum[group] += x * x
				count[group] += n.Groups[i].Count
			}
			n.Free()
			want, wantCount := squares(m, l)
			if !maps.Equal(count, wantCount) {
				t.Errorf("%s, layer %d: parameters %v, want %v", name, l, count, wantCount)
			}
			for group, x := range want {
				if !(math.Abs(sum[group]-x) <= 1e-6*x) {
					t.Errorf("%s, layer %d: %s has %g of the squared norm, want %g", name, l, group, sum[group], x)
				}
			}
		}
		m.Free()
	}
}

// Queries and keys of a differential head belong to its two maps in turn; a Transformer's have one.
func TestGradientsByMap(t *testing.T) {
	for arch, want := range map[string][]string{
		"transformer": {"k", "q", "v"}, "diff": {"k1", "k2", "q1", "q2", "v"}, "diff2": {"k", "q1", "q2", "v"},
	} {
		c := configs(t)[arch+"/grouped"] // four heads of width 4, two groups
		m := newModel(t, ref.New(), c)
		m.Params.ZeroGrad(m.Device())
		if err := m.Backprop(batch(rand.New(rand.NewPCG(1, 2)), c, 2, 9), 1); err != nil {
			t.Fatal(err)
		}
		a, _ := layer.LookupArch(arch)
		g, byMap := gradient(m.Params.Lookup("layers.1.attn.qkv.weight")), map[string]float64{}
		for i, x := range g {
			head, group := i/c.Dim/c.HeadDim, "v"
			queries, keys := c.Heads*a.Maps, c.KVHeads*a.Keys
			switch {
			case head < queries:
				group = []string{"q", "q1", "q2"}[min(a.Maps-1, 1)*(1+head%a.Maps)]
			case head < queries+keys:
				group = []string{"k", "k1", "k2"}[min(a.Keys-1, 1)*(1+(head-queries)%a.Keys)]
			}
			byMap[group] += x * x
		}
		if got := slices.Sorted(maps.Keys(byMap)); !slices.Equal(got, want) {
			t.Fatalf("%s: groups %v, want %v", arch, got, want)
		}
		n := m.NewGradientNorms(m.GradientGroups(1))
		for i, x := range n.Read(nil) {
			if group := n.Groups[i].Name; byMap[group] > 0 && !(math.Abs(x*x-byMap[group]) <= 1e-6*byMap[group]) {
				t.Errorf("%s: %s has the squared norm %g, want %g", arch, group, x*x, byMap[group])
			}
			delete(byMap, n.Groups[i].Name)
		}
		if len(byMap) > 0 {
			t.Errorf("%s: no groups %v", arch, byMap)
		}
		n.Free()
		m.Free()
	}
}
