package task

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// fullMaps computes every head's scores in full from the queries and keys it is shown, by the textbook.
type fullMaps struct {
	dev    device.Device
	scores [][][]float64 // [layer·heads][query][key]
	norms  [][]float64   // [layer·heads][key]: ‖v‖
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
		qh, kh := v.QueryHead(h, m), h/(s.Heads/s.Groups)*v.Keys+min(m, v.Keys-1)
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
		p.norms = append(p.norms, p.valueNorms(v, h))
	}
}

func (p *fullMaps) valueNorms(v layer.View, h int) (out []float64) {
	s := v.Shape
	x := make([]float64, v.V.Len())
	device.ReadFloats(p.dev, x, v.V)
	for t := range s.T {
		sum := 0.0
		for c := range s.DV {
			y := x[t*v.V.Cols+h/(s.Heads/s.Groups)*s.DV+c]
			sum += y * y
		}
		out = append(out, math.Sqrt(sum))
	}
	return out
}

// naiveSegments sums a head's last row by the bytes that tokens stand for: token i is byte i−1.
func naiveSegments(row []float64, c data.Needle, of func(float64) float64) Segments {
	var s Segments
	for t, x := range row {
		x = of(x)
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
	return s
}

// aNeedle is a prompt of 300 bytes.
func aNeedle() data.Needle {
	return data.NewNeedle(rand.New(rand.NewPCG(5, 0)),
		data.NeedleOptions{Needles: 2, Depth: 0.5, Bytes: 300, Digits: 3})
}

func sameSegments(a, b Segments, tolerance float64) bool {
	for i, x := range a.List() {
		if !near(x, b.List()[i], tolerance) {
			return false
		}
	}
	return true
}

// Every head's row is divided by its own magnitude: the shares of magnitude sum to 1 whatever λ is, those of A1 and A2
// too.
func TestHeadsAreNormalised(t *testing.T) {
	onArchs(t, 340, func(t *testing.T, s *eval.Subject) {
		g, maps, err := look(s, aNeedle())
		if err != nil {
			t.Fatal(err)
		}
		for l, heads := range g.Heads {
			for h, x := range heads {
				if !near(x.Magnitude.Total(), 1, 1e-9) || !near(x.A1.Total(), 1, 1e-4) || maps == 2 &&
					!near(x.A2.Total(), 1, 1e-4) {
					t.Errorf("layer %d, head %d: %+v", l, h, x)
				}
				if maps == 1 && (x.Signed != x.Magnitude || x.A2 != Segments{}) {
					t.Errorf("a plain head has a sign, or a second map: %+v", x)
				}
			}
		}
		if m := g.mean(); !near(m.Magnitude.Total(), 1, 1e-9) {
			t.Errorf("%+v", m)
		}
	})
}

func TestAttentionEqualsFullMaps(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 340)
		c := aNeedle()
		g, _, err := look(s, c)
		if err != nil {
			t.Fatal(err)
		}
		ids := s.Encode(c.Prompt + " ") // the space must produce the digit
		p := &fullMaps{dev: s.Model.Device()}
		if err := s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p); err != nil {
			t.Fatal(err)
		}
		heads := s.Model.Config.Heads
		for i, scores := range p.scores {
			row := scores[len(scores)-1]
			magnitude, signed := naiveSegments(row, c, math.Abs), naiveSegments(row, c, keepSign)
			total := magnitude.Total()
			got := g.Heads[i/heads][i%heads]
			weighted := make([]float64, len(row))
			for t := range row {
				weighted[t] = row[t] * p.norms[i][t]
			}
			if value := naiveSegments(weighted, c, math.Abs); !sameSegments(got.Value,
				value.over(value.Total()), 1e-9) {
				t.Errorf("%s, head %d: weighted by values %+v", a.Name, i, got.Value)
			}
			if !sameSegments(got.Magnitude, magnitude.over(total), 1e-9) ||
				!sameSegments(got.Signed, signed.over(total), 1e-9) {
				t.Errorf("%s, head %d: %+v", a.Name, i, got)
			}
		}
	}
}

// A head whose λ is near 1 has next to no sum of its own. Divided by the sum over all heads it would vanish from the
// mean; here it counts as much as any other.
func TestLambdaDoesNotWeighHeads(t *testing.T) {
	near1 := HeadGaze{Magnitude: Segments{Answer: 1}, Signed: Segments{Answer: 0.5}}
	plain := HeadGaze{Magnitude: Segments{Before: 1}, Signed: Segments{Before: 1}}
	g := Gaze{Heads: [][]HeadGaze{{near1}, {plain}}}
	if m := g.mean(); m.Magnitude.Answer != 0.5 || m.Magnitude.Before != 0.5 || m.Signed.Answer != 0.25 {
		t.Errorf("%+v", m)
	}
}

// A model whose weights are all zero looks at every token alike, so a segment's share is its share of the tokens, by
// hand: one token is the first, tokens are bytes. With A1 = A2 the sign of A1 − λA2 is everywhere that of 1 − λ.
func TestAttentionOfUniformModel(t *testing.T) {
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 340)
		zero, err := model.New(ref.New(), s.Model.Config, layer.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		s.Model = zero
		c := aNeedle()
		g, _, err := look(s, c)
		if err != nil {
			t.Fatal(err)
		}
		n := float64(len(c.Prompt) + 2) // the first token, and the space that must produce the digit
		want := Segments{1 / n, float64(c.Spans[0][0]) / n, float64(c.Spans[0][1]-c.Spans[0][0]) / n,
			float64(c.QuerySpan[0]-c.Spans[0][1]) / n, float64(len(c.Prompt)+1-c.QuerySpan[0]) / n}
		for l := range g.Heads {
			for h, got := range g.Heads[l] {
				if !sameSegments(got.Magnitude, want, 1e-9) || !sameSegments(got.A1, want, 1e-9) {
					t.Fatalf("%s: layer %d head %d has %+v, want %+v", a.Name, l, h, got, want)
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
		x, err := mapsOf(context.Background(), s, c, headChoice{-1, -1})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(x.Units[1:], ""); got != c.Prompt+" " || !x.Words {
			t.Errorf("%s: units spell %q", a.Name, got)
		}
		if got := strings.TrimSpace(strings.Join(x.Units[x.Answer[0]:x.Answer[1]],
			"")); got != c.Prompt[c.Spans[0][0]:c.Spans[0][1]] {
			t.Errorf("%s: the answer's units spell %q", a.Name, got)
		}
		if got := strings.Join(x.Units[x.Query:], ""); strings.TrimSpace(got) != c.Prompt[c.QuerySpan[0]:] {
			t.Errorf("%s: the question's units spell %q", a.Name, got)
		}
		inside := c // an answer that ends within a word has the whole word
		inside.Spans = [][2]int{{c.Spans[0][0], c.Spans[0][1] - 1}}
		if y, err := mapsOf(context.Background(), s, inside, headChoice{-1, -1}); err != nil || y.Answer != x.Answer {
			t.Errorf("%s: without its full stop the answer has units %v, %v; want %v", a.Name, y, err, x.Answer)
		}
		if len(x.Maps) != 2*a.Maps-1 {
			t.Fatalf("%s: %d maps", a.Name, len(x.Maps))
		}
		checkMaps(t, s, c, x)
	}
}

// checkMaps holds the last matrix against the full maps: the sum over the answer's words, and the choice of the head.
func checkMaps(t *testing.T, s *eval.Subject, c data.Needle, x *MapExample) {
	t.Helper()
	ids := s.Encode(c.Prompt + " ")
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
				t.Fatalf("%s: row %d of %s has %d entries that sum to %g, want %g", s.Name, i, m.Name,
					len(row), total, want)
			}
		}
	}
}

func TestMapsRefuses(t *testing.T) {
	s := subject(t, ref.New(), "diff", 1200)
	if _, err := mapsOf(context.Background(), s, shortNeedle(), headChoice{2, -1}); err == nil {
		t.Error("layer 3 of 2: no error")
	}
	long := data.NewNeedle(rand.New(rand.NewPCG(3, 4)), data.NeedleOptions{Bytes: 1000})
	if _, err := mapsOf(context.Background(), s, long, headChoice{-1, -1}); err == nil {
		t.Error("a thousand bytes: no error")
	}
	x, err := mapsOf(context.Background(), subject(t, ref.New(), "diff", 300), shortNeedle(), headChoice{1, 2})
	if err != nil || x.Layer != 2 || x.Head != 3 {
		t.Errorf("layer 2, head 3 asked for: layer %d, head %d, %v", x.Layer, x.Head, err)
	}
}

// Right and wrong retrievals are averaged apart, and together they are all.
func TestOutcomes(t *testing.T) {
	var r AttentionResult
	for i := range 6 {
		r.outcome(i%3 == 0).take(&HeadGaze{Magnitude: Segments{Answer: float64(i)}})
	}
	if r.Right.N != 2 || !near(r.Right.Gaze.Magnitude.Answer, 1.5, 1e-12) || r.Wrong.N != 4 ||
		!near(r.Wrong.Gaze.Magnitude.Answer, 3, 1e-12) {
		t.Errorf("%+v %+v", r.Right, r.Wrong)
	}
}
