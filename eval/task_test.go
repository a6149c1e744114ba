package eval

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// heldOut builds a small token set and gives its held-out split.
func heldOut(t *testing.T) *data.Split {
	t.Helper()
	src, err := data.Open("synthetic:seed=7,docs=40,len=200")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := data.Build(context.Background(), dir, []data.Source{src}, tokenizer.Bytes(), data.BuildOptions{HeldOut: 0.2}); err != nil {
		t.Fatal(err)
	}
	set, err := data.OpenSet(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	sp, err := set.Split(data.Valid)
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

func TestLoss(t *testing.T) {
	sp := heldOut(t)
	onArchs(t, 32, func(t *testing.T, s *Subject) {
		const T, batches = 20, 2
		got, err := Loss(context.Background(), s, sp, LossOptions{SeqLen: T, Batches: batches, Isolate: true})
		if err != nil {
			t.Fatal(err)
		}
		loader := data.NewLoader(sp, 1, T, 0)
		ids, targets, starts := make([]int32, T), make([]int32, T), make([]int32, T)
		losses := make([]float32, T)
		var want tally
		for range batches * s.Batch {
			loader.Next(ids, targets, starts)
			if err := s.Model.Score(&model.Batch{B: 1, T: T, IDs: ids, Targets: targets, Starts: starts}); err != nil {
				t.Fatal(err)
			}
			s.Model.Losses(losses)
			sum := 0.0
			for _, x := range losses {
				sum += float64(x)
			}
			want.add(sum / T)
		}
		m := want.mean()
		if !near(got.Loss.Value, m.Value, 1e-5) || !near(got.Loss.StdErr, m.StdErr, 1e-5) || got.Loss.N != m.N || got.Tokens != batches*s.Batch*T {
			t.Errorf("%+v over %d tokens, want %+v", got.Loss, got.Tokens, m)
		}
		last := got.ByPosition[len(got.ByPosition)-1]
		if last.Position != T || !near(last.Loss, m.Value, 1e-5) || !near(got.Perplexity, math.Exp(m.Value), 1e-2) {
			t.Errorf("up to the end %+v, perplexity %g, loss %g", last, got.Perplexity, m.Value)
		}
	})
}

// Asking for more batches than there is text must not count text twice.
func TestLossEndsWithTheSplit(t *testing.T) {
	sp := heldOut(t)
	s := subject(t, ref.New(), "transformer", 64)
	got, err := Loss(context.Background(), s, sp, LossOptions{SeqLen: 64, Batches: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if whole := int(sp.Tokens()); got.Tokens < whole || got.Tokens >= whole+s.Batch*64 {
		t.Errorf("%d tokens scored of a split of %d", got.Tokens, whole)
	}
}

// oracle answers needle prompts by reading them, and is wrong on every fourth; it keeps what it was asked.
type oracle struct{ reqs []Generation }

func (o *oracle) Loglikelihood(context.Context, []Continuation) ([]Score, error) {
	return nil, errors.ErrUnsupported
}
func (o *oracle) LoglikelihoodRolling(context.Context, []string) ([]Score, error) {
	return nil, errors.ErrUnsupported
}
func (o *oracle) GenerateUntil(_ context.Context, reqs []Generation) ([]string, error) {
	var out []string
	for i, r := range reqs {
		question := r.Prompt[strings.LastIndexByte(r.Prompt, '\n'):]
		answer := ""
		for _, part := range strings.Split(r.Prompt, "The magic code is ")[1:] {
			city, rest, _ := strings.Cut(part, " ")
			number, _, ok := strings.Cut(rest, ".")
			if ok && strings.Contains(question, city) && i%4 != 3 {
				answer += " The magic code is " + city + " " + number + "."
			}
		}
		out = append(out, answer)
	}
	o.reqs = append(o.reqs, reqs...)
	return out, nil
}

func TestNeedle(t *testing.T) {
	var lm oracle
	opt := NeedleOptions{Needles: 4, Queries: 2, Depths: []float64{0, 1}, Samples: 8, Bytes: 500, Digits: 4, Seed: 3}
	got, err := Needle(context.Background(), &lm, opt)
	if err != nil {
		t.Fatal(err)
	}
	want := Mean{0.75, math.Sqrt(1.5 / 7 / 8), 8}
	for d, m := range got.ByDepth {
		if m.N != want.N || !near(m.Value, want.Value, 1e-12) || !near(m.StdErr, want.StdErr, 1e-12) {
			t.Errorf("depth %d: %+v, want %+v", d, m, want)
		}
	}
	if got.Accuracy.N != 16 || got.Accuracy.Value != 0.75 {
		t.Errorf("over all %+v", got.Accuracy)
	}
	for i, c := range append(needles(opt, 0, 0), needles(opt, 1, 1)...) {
		if r := lm.reqs[i]; r.Prompt != c.Prompt || r.MaxTokens < len(c.Completion()) {
			t.Errorf("request %d has room for %d tokens; %q has %d bytes", i, r.MaxTokens, c.Completion(), len(c.Completion()))
		}
	}
}

// A model of bytes gets through: prompts, answers and stops fit together.
func TestNeedleWithModel(t *testing.T) {
	s := subject(t, ref.New(), "diff", 260)
	opt := NeedleOptions{Needles: 1, Queries: 1, Depths: []float64{0.5}, Samples: 2, Bytes: 200, Digits: 3}
	if r, err := Needle(context.Background(), s, opt); err != nil || r.Accuracy.N != 2 {
		t.Errorf("%+v, %v", r, err)
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
		kh := h/v.Maps/(s.Heads/s.Groups)*v.Keys + min(h%v.Maps, v.Keys-1)
		for t := range s.T {
			for j := range t + 1 {
				dot := 0.0
				for c := range s.D {
					dot += q[t*v.Q.Cols+h*s.D+c] * k[j*v.K.Cols+kh*s.D+c]
				}
				p.logits = append(p.logits, dot/math.Sqrt(float64(s.D)))
			}
		}
	}
}

func TestOutliers(t *testing.T) {
	sp := heldOut(t)
	for _, a := range layer.Archs() {
		s := subject(t, ref.New(), a.Name, 32)
		got, err := Outliers(context.Background(), s, sp, 24, 2)
		if err != nil {
			t.Fatal(err)
		}
		p := &magnitudes{dev: s.Model.Device()}
		loader := data.NewLoader(sp, 1, 24, 0)
		ids, rest := make([]int32, 24), make([]int32, 24)
		for range 2 {
			loader.Next(ids, rest, make([]int32, 24))
			if err := s.Model.Inspect(&model.Batch{B: 1, T: 24, IDs: ids}, p); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range map[string]struct {
			got  Extreme
			list []float64
		}{"logits": {got.Logits, p.logits}, "hidden": {got.Hidden, p.hidden}} {
			for i := range c.list {
				c.list[i] = math.Abs(c.list[i])
			}
			slices.Sort(c.list)
			n := len(c.list)
			if !near(c.got.Top1, c.list[n-1], 1e-6) || !near(c.got.Top10, c.list[n-10], 1e-6) || !near(c.got.Top100, c.list[n-100], 1e-6) ||
				!near(c.got.Median, c.list[n/2], 0.02*c.list[n/2]) {
				t.Errorf("%s %s: %+v, want %g … %g … %g, median %g", a.Name, name, c.got, c.list[n-1], c.list[n-10], c.list[n-100], c.list[n/2])
			}
		}
		if got.Tokens != 48 {
			t.Errorf("%d tokens, want 48", got.Tokens)
		}
	}
}
