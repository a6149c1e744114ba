package eval

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// fullMaps computes every head's scores in full from the queries and keys it is shown, by the textbook.
type fullMaps struct {
	dev    device.Device
	scores [][][]float64 // [layer·heads][query][key]
}

func (p *fullMaps) Hidden(int, tensor.Tensor) {}

func (p *fullMaps) Attention(v layer.View) {
	s := v.Shape
	q, k, lam := make([]float64, v.Q.Len()), make([]float64, v.K.Len()), make([]float64, v.Lam.Len())
	device.ReadFloats(p.dev, q, v.Q)
	device.ReadFloats(p.dev, k, v.K)
	if len(lam) > 0 {
		device.ReadFloats(p.dev, lam, v.Lam)
	}
	row := func(h, m, t int) []float64 {
		out, sum := make([]float64, s.T), 0.0
		qh, kh := h*v.Maps+m, h/(s.Heads/s.Groups)*v.Keys+min(m, v.Keys-1)
		for j := range t + 1 {
			dot := 0.0
			for c := range s.D {
				dot += q[t*v.Q.Cols+qh*s.D+c] * k[j*v.K.Cols+kh*s.D+c]
			}
			out[j] = math.Exp(dot / math.Sqrt(float64(s.D)))
			sum += out[j]
		}
		for j := range out {
			out[j] /= sum
		}
		return out
	}
	for h := range s.Heads {
		var head [][]float64
		for t := range s.T {
			x := row(h, 0, t)
			if v.Maps == 2 {
				l := lam[0]
				if len(lam) > 1 {
					l = lam[t*s.Heads+h]
				}
				for j, y := range row(h, 1, t) {
					x[j] -= l * y
				}
			}
			head = append(head, x)
		}
		p.scores = append(p.scores, head)
	}
}

// naiveSegments sums the last rows by the bytes that tokens stand for: token i is byte i−1.
func naiveSegments(scores [][][]float64, c data.Needle, magnitude bool) Segments {
	var s Segments
	for _, head := range scores {
		for t, x := range head[len(head)-1] {
			if magnitude {
				x = math.Abs(x)
			}
			switch at := t - 1; {
			case at < 0:
				s.BOS += x
			case at < c.Spans[0][0]:
				s.Before += x
			case at < c.Spans[0][1]:
				s.Answer += x
			case at < c.QuerySpan[0]:
				s.After += x
			default:
				s.Query += x
			}
		}
	}
	return s.normalised()
}

var smallNeedle = NeedleOptions{Needles: 2, Queries: 1, Depths: []float64{0, 0.5, 1}, Samples: 2, Bytes: 300, Digits: 3, Seed: 5}

func TestAttentionSumsToOne(t *testing.T) {
	onArchs(t, 340, func(t *testing.T, s *Subject) {
		r, err := Attention(context.Background(), s, smallNeedle)
		if err != nil {
			t.Fatal(err)
		}
		for d := range smallNeedle.Depths {
			list := append([]Segments{r.Signed[d], r.Absolute[d]}, r.ByLayer[d]...)
			for _, x := range list {
				if !near(x.total(), 1, 1e-6) {
					t.Errorf("depth %d: %+v sums to %g", d, x, x.total())
				}
			}
			if a := r.Absolute[d]; min(a.BOS, a.Before, a.Answer, a.After, a.Query) <= 0 {
				t.Errorf("depth %d: a segment is empty: %+v", d, a)
			}
		}
		plain := s.Model.Config.Arch == "transformer"
		if same := near(r.Signed[0].Answer, r.Absolute[0].Answer, 1e-9); same != plain {
			t.Errorf("sign and magnitude equal: %v", same)
		}
		if r.Answer.N != 6 || r.Answer.StdErr <= 0 || r.Noise.Value <= r.Answer.Value/10 {
			t.Errorf("over all: answer %+v, noise %+v", r.Answer, r.Noise)
		}
	})
}

func TestAttentionEqualsFullMaps(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 340)
		opt := smallNeedle
		opt.Samples, opt.Depths = 1, []float64{0.5}
		r, err := Attention(context.Background(), s, opt)
		if err != nil {
			t.Fatal(err)
		}
		c := needles(opt, 0.5, 0)[0]
		ids := s.encode(c.Prompt + " ") // the space must produce the digit
		p := &fullMaps{dev: s.Model.Device()}
		if err := s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p); err != nil {
			t.Fatal(err)
		}
		for magnitude, got := range map[bool]Segments{false: r.Signed[0], true: r.Absolute[0]} {
			want := naiveSegments(p.scores, c, magnitude)
			d := want
			d.add(got, -1)
			for _, x := range d.list() {
				if !near(x, 0, 1e-9) {
					t.Errorf("%s: %+v, by hand %+v", a.Name, got, want)
					break
				}
			}
		}
	}
}

// A model whose weights are all zero looks at every token alike, so a segment's share is its share of the tokens, by hand: one token
// is the first, tokens are bytes. With A1 = A2 the sign of A1 − λA2 is everywhere that of 1 − λ.
func TestAttentionOfUniformModel(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 340)
		zero, err := model.New(ref.New(), s.Model.Config, layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		s.Model = zero
		c := needles(smallNeedle, 0.5, 0)[0]
		g, err := s.look(c)
		if err != nil {
			t.Fatal(err)
		}
		n := float64(len(c.Prompt) + 2) // the first token, and the space that must produce the digit
		want := Segments{1 / n, float64(c.Spans[0][0]) / n, float64(c.Spans[0][1]-c.Spans[0][0]) / n, float64(c.QuerySpan[0]-c.Spans[0][1]) / n,
			float64(len(c.Prompt)+1-c.QuerySpan[0]) / n}
		for kind, heads := range map[string][][]Segments{"signed": g.signed, "absolute": g.absolute} {
			for l := range heads {
				for h, got := range heads[l] {
					d := got.normalised()
					d.add(want, -1)
					for _, x := range d.list() {
						if !near(x, 0, 1e-9) {
							t.Fatalf("%s %s: layer %d head %d has %+v, want %+v", a.Name, kind, l, h, got.normalised(), want)
						}
					}
				}
			}
		}
	}
}

// shortNeedle is a prompt that fits a map.
func shortNeedle() data.Needle {
	r := rand.New(rand.NewPCG(3, 4))
	return data.NewNeedle(r, data.NeedleOptions{Depth: 0.5, Bytes: 260, Digits: 3})
}

func TestMaps(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 300)
		c := shortNeedle()
		x, err := Maps(context.Background(), s, c, MapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(x.Units[1:], ""); got != c.Prompt+" " || !x.Words {
			t.Errorf("%s: units spell %q", a.Name, got)
		}
		if got := strings.TrimSpace(strings.Join(x.Units[x.Answer[0]:x.Answer[1]], "")); got != c.Prompt[c.Spans[0][0]:c.Spans[0][1]] {
			t.Errorf("%s: the answer's units spell %q", a.Name, got)
		}
		if got := strings.Join(x.Units[x.Query:], ""); strings.TrimSpace(got) != c.Prompt[c.QuerySpan[0]:] {
			t.Errorf("%s: the question's units spell %q", a.Name, got)
		}
		if len(x.Maps) != 2*a.Queries-1 {
			t.Fatalf("%s: %d maps", a.Name, len(x.Maps))
		}
		checkMaps(t, s, c, &x)
	}
}

// checkMaps holds the last matrix against the full maps: the sum over the answer's words, and the choice of the head.
func checkMaps(t *testing.T, s *Subject, c data.Needle, x *MapExample) {
	t.Helper()
	ids := s.encode(c.Prompt + " ")
	p := &fullMaps{dev: s.Model.Device()}
	if err := s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p); err != nil {
		t.Fatal(err)
	}
	best, at, onAnswer := math.Inf(-1), 0, 0.0
	for i, head := range p.scores {
		answer, all := 0.0, 0.0
		for k, v := range head[len(ids)-1] {
			all += math.Abs(v)
			if k-1 >= c.Spans[0][0] && k-1 < c.Spans[0][1] {
				answer += v
			}
		}
		if answer/all > best {
			best, at, onAnswer = answer/all, i, answer
		}
	}
	heads := s.Model.Config.Heads
	if x.Layer != at/heads+1 || x.Head != at%heads+1 {
		t.Errorf("%s: layer %d head %d, most attention has number %d", s.Name, x.Layer, x.Head, at)
	}
	rows := x.Maps[len(x.Maps)-1].Rows
	sum := 0.0
	for _, v := range rows[len(rows)-1][x.Answer[0]:x.Answer[1]] {
		sum += v
	}
	sum -= p.scores[at][len(ids)-1][c.Spans[0][0]] // the space before the sentence belongs to its first word
	if !near(sum, onAnswer, 2e-4) {
		t.Errorf("%s: the last row has %g on the answer, by hand %g", s.Name, sum, onAnswer)
	}
	for _, m := range x.Maps {
		want := 1.0
		if strings.Contains(m.Name, "λ") {
			if s.Model.Config.Arch == "diff2" { // λ differs within a word
				continue
			}
			want -= x.Lambda
		}
		for i, row := range m.Rows {
			total := 0.0
			for _, v := range row {
				total += v
			}
			if len(row) != i+1 || !near(total, want, 5e-4) {
				t.Fatalf("%s: row %d of %s has %d entries that sum to %g, want %g", s.Name, i, m.Name, len(row), total, want)
			}
		}
	}
}

func TestMapsRefuses(t *testing.T) {
	s := subject(t, ref.New(), "diff", 1200)
	if _, err := Maps(context.Background(), s, shortNeedle(), MapOptions{Layer: 3}); err == nil {
		t.Error("layer 3 of 2: no error")
	}
	long := data.NewNeedle(rand.New(rand.NewPCG(3, 4)), data.NeedleOptions{Bytes: 1000})
	if _, err := Maps(context.Background(), s, long, MapOptions{}); err == nil {
		t.Error("a thousand bytes: no error")
	}
	x, err := Maps(context.Background(), subject(t, ref.New(), "diff", 300), shortNeedle(), MapOptions{Layer: 2, Head: 3})
	if err != nil || x.Layer != 2 || x.Head != 3 {
		t.Errorf("layer 2, head 3 asked for: layer %d, head %d, %v", x.Layer, x.Head, err)
	}
}
