package task

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

func TestTokenSpan(t *testing.T) {
	offsets := []int{0, 0, 3, 5, 9, 12} // a first token without text, then tokens of 3, 2, 4 and 3 bytes
	for _, c := range []struct{ span, want [2]int }{
		{[2]int{0, 3}, [2]int{1, 2}},
		{[2]int{0, 4}, [2]int{1, 3}},
		{[2]int{2, 6}, [2]int{1, 4}},
		{[2]int{5, 9}, [2]int{3, 4}},
		{[2]int{11, 12}, [2]int{4, 5}},
		{[2]int{12, 13}, [2]int{5, 5}},
	} {
		if from, to := tokenSpan(offsets, c.span); from != c.want[0] || to != c.want[1] {
			t.Errorf("bytes %v are tokens [%d,%d), want %v", c.span, from, to, c.want)
		}
	}
}

func TestOffsets(t *testing.T) {
	s := &eval.Subject{Tokenizer: tokenizer.Bytes()}
	if got, want := offsets(s, s.Encode("aé")), []int{0, 0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// magnitudes keeps everything that Outliers streams.
type magnitudes struct {
	dev            device.Device
	logits, hidden []float64
}

func (p *magnitudes) Hidden(_ int, x tensor.Tensor) {
	all := make([]float64, x.Len())
	device.ReadFloats(p.dev, all, x)
	p.hidden = append(p.hidden, all...)
}

func (p *magnitudes) Attention(v layer.View) {
	s := v.Shape
	q, k := make([]float64, v.Q.Len()), make([]float64, v.K.Len())
	device.ReadFloats(p.dev, q, v.Q)
	device.ReadFloats(p.dev, k, v.K)
	for h := range s.Heads * v.Maps {
		qh, kh := v.QueryHead(h/v.Maps, h%v.Maps), h/v.Maps/(s.Heads/s.Groups)*v.Keys+min(h%v.Maps, v.Keys-1)
		for t := range s.T {
			for j := range t + 1 {
				dot := 0.0
				for c := range s.D {
					dot += q[t*v.Q.Cols+qh*s.D+c] * k[j*v.K.Cols+kh*s.D+c]
				}
				p.logits = append(p.logits, dot/math.Sqrt(float64(s.D)))
			}
		}
	}
}

// The streamed ranks are those of all magnitudes, sorted.
func TestOutliers(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 32)
		p, probe := &magnitudes{dev: s.Model.Device()}, &outlierProbe{dev: s.Model.Device()}
		for _, text := range []string{"some words to look at, and then more", "another text of some length, for once"} {
			b := read(s, text, 24)
			if err := s.Model.Inspect(b, p); err != nil {
				t.Fatal(err)
			}
			if err := s.Model.Inspect(b, probe); err != nil {
				t.Fatal(err)
			}
		}
		got := OutlierResult{Logits: probe.logits.result(), Hidden: probe.hidden.result()}
		for name, c := range map[string]struct {
			got  Extreme
			list []float64
		}{"logits": {got.Logits, p.logits}, "hidden": {got.Hidden, p.hidden}} {
			for i := range c.list {
				c.list[i] = math.Abs(c.list[i])
			}
			slices.Sort(c.list)
			n := len(c.list)
			if !near(c.got.Top1, c.list[n-1], 1e-6) || !near(c.got.Top10, c.list[n-10], 1e-6) ||
				!near(c.got.Top100, c.list[n-100], 1e-6) || !near(c.got.Median, c.list[n/2], 0.02*c.list[n/2]) {
				t.Errorf("%s %s: %+v, want %g … %g … %g, median %g", a.Name, name, c.got, c.list[n-1], c.list[n-10],
					c.list[n-100], c.list[n/2])
			}
		}
	}
}

// Ranks are exact, the median to 1 %, also after an answer has kept them.
func TestExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 100, 101, 5000} {
		var e extremes
		list := make([]float64, n)
		for i := range list {
			list[i] = math.Exp(3 * r.NormFloat64())
			e.add(list[i])
		}
		slices.Sort(list)
		kth := func(k int) float64 {
			if k > n {
				return 0
			}
			return list[n-k]
		}
		var merged extremes
		merged.merge(e.kept())
		if merged.result() != e.result() || merged.n != n {
			t.Errorf("of %d: kept and merged %+v, before %+v", n, merged.result(), e.result())
		}
		got := e.result()
		want := Extreme{kth(1), kth(2), kth(3), kth(10), kth(100), 0}
		if n > 0 {
			want.Median = list[n/2]
		}
		if !near(got.Median, want.Median, 0.012*want.Median) {
			t.Errorf("median of %d: %g, want %g", n, got.Median, want.Median)
		}
		if got.Median = want.Median; got != want {
			t.Errorf("of %d: %+v, want %+v", n, got, want)
		}
	}
	if binOf(math.Inf(1)) != bins-1 || binOf(0) != 0 || binOf(1) != oneBin {
		t.Errorf("bins of ∞, 0, 1: %d, %d, %d", binOf(math.Inf(1)), binOf(0), binOf(1))
	}
}
