package eval

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// A comparison is the same from both sides, whatever their sizes: the difference and its interval change their signs,
// the error and p stay.
func TestPairFromBothSides(t *testing.T) {
	model := func(k int) *Result {
		r := &Result{}
		for i := range 9 {
			r.Answers = append(r.Answers, Answer{ID: fmt.Sprint(i),
				Values: map[string]float64{"x": float64((i*i+3*k)%7) + 0.5*float64(k%3)}})
		}
		return r
	}
	for _, n := range [][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 3}, {3, 3}} {
		var a, b []*Result
		for k := range n[0] {
			a = append(a, model(k))
		}
		for k := range n[1] {
			b = append(b, model(10+k))
		}
		p, ok := pair(a, b, "x", 1)
		q, back := pair(b, a, "x", 1)
		if !ok || !back || p.Diff == 0 || p.Seeds != n || q.Seeds != [2]int{n[1], n[0]} || p.N != 9 || q.N != 9 {
			t.Fatalf("%v: %+v and %+v", n, p, q)
		}
		if !near(p.Diff, -q.Diff, 1e-12) || !near(p.Low, -q.High, 1e-9) || !near(p.High, -q.Low, 1e-9) ||
			!near(p.StdErr, q.StdErr, 1e-12) || !near(p.P, q.P, 1e-9) {
			t.Errorf("%v: %+v, from the other side %+v", n, p, q)
		}
	}
}

// Errors of small spread by hand: none of equal values, 0.05 of 1 and 1.1.
func TestSmallErrors(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{2, 2, 2}, 0}, {[]float64{1, 1.1}, 0.05}, {[]float64{-3, -3.002}, 0.001}, {[]float64{7}, 0}} {
		var r Ratio
		for _, x := range c.values {
			r.Add(x, 1)
		}
		if m := r.Mean(); !near(m.StdErr, c.want, 1e-7) {
			t.Errorf("%v: %+v, want an error of %g", c.values, m, c.want)
		}
	}
	for n := 2; n < 40; n++ { // rounding must not make the square of an error negative
		var r Ratio
		for range n {
			r.Add(1/float64(n+1), 1)
		}
		if m := r.Mean(); !near(m.StdErr, 0, 1e-7) {
			t.Errorf("%d equal values: %+v", n, m)
		}
	}
	if m := new(Ratio).Mean(); m != (Mean{}) {
		t.Errorf("of nothing: %+v", m)
	}
}

// A text's hash is the first eight bytes of SHA-256 over each text after its length: where texts are divided counts.
func TestHashText(t *testing.T) {
	for _, texts := range [][]string{nil, {""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"é"}} {
		s := ""
		for _, x := range texts {
			s += fmt.Sprintf("%d %s", len(x), x)
		}
		sum := sha256.Sum256([]byte(s))
		if got, want := HashText(texts...), fmt.Sprintf("%x", sum[:8]); got != want {
			t.Errorf("%q: %s, want %s", texts, got, want)
		}
	}
}

// The common prefix of two lists, from both sides, and the longest option a text begins with, in any order of options.
func TestPrefixes(t *testing.T) {
	for _, c := range []struct {
		a, b []int32
		want int
	}{{nil, nil, 0}, {[]int32{1}, nil, 0}, {[]int32{1, 2}, []int32{1, 2, 3}, 2}, {[]int32{1, 2}, []int32{1, 2}, 2},
		{[]int32{1, 9, 3}, []int32{1, 2, 3}, 1}, {[]int32{4}, []int32{5}, 0}} {
		if commonPrefix(c.a, c.b) != c.want || commonPrefix(c.b, c.a) != c.want {
			t.Errorf("%v and %v: %d and %d, want %d", c.a, c.b, commonPrefix(c.a, c.b), commonPrefix(c.b, c.a), c.want)
		}
	}
	for i, options := range [][]string{{"new", "new york", "york"}, {"new york", "new", "york"},
		{"york", "new york", "new"}} {
		if got := BeginsWith("New York.", options); options[max(got, 0)] != "new york" {
			t.Errorf("%d: %q is taken of %q", i, options[max(got, 0)], options)
		}
	}
}

// Refusals name the numbers that do not fit.
func TestRefusalsNameNumbers(t *testing.T) {
	const most = "the 512 million tokens that a task may have; take fewer, or --limit"
	o := Options{Shots: 70, context: 64}
	p := &Plan{Options: &Options{}}
	_, grid := p.Grid(1<<20, 1<<10, 9)
	for want, err := range map[string]error{
		"70 examples before each question do not fit a context of 64 tokens": o.Check(&Task{Name: "t"}, 64),
		"600 samples of up to 1048576 tokens are more than " + most:          p.Fits(600, 1<<20),
		"1073741824 samples of up to 9 tokens are more than " + most:         grid,
		"": p.Fits(512, 1<<20),
	} {
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := o.Check(&Task{Name: "t"}, 70); err != nil {
		t.Errorf("as many examples as tokens: %v", err)
	}
}
