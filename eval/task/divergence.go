package task

import (
	"context"
	"errors"
	"math"

	"antiphase/eval"
	"antiphase/internal/cores"
)

// divergence measures the distance of each variant's next-token distributions from the plain model's, on held-out text:
//
//	KL = Σ_v P(v)·(log P(v) − log Q(v)), P the plain model's, the mean over positions
//
// One text at a time: only its logits, length × vocabulary, are held.
type divergence struct {
	texts  []string
	length int
	list   []variant // the first is the plain model
}

// klName is the measure of a variant.
func klName(v *variant) string { return "kl " + v.name }

// ids name the texts.
func (d *divergence) ids() (out []string) {
	for i := range d.texts {
		out = append(out, "kl "+digits(i))
	}
	return out
}

// ask compares all variants on some of the texts.
func (d *divergence) ask(ctx context.Context, s *eval.Subject, which []int) (out []eval.Answer, err error) {
	defer func() { err = errors.Join(err, d.list[0].set(s)) }()
	for _, w := range which {
		b := read(s, d.texts[w], d.length)
		plain, other := make([]float32, b.T*s.Model.Config.Vocab), make([]float32, b.T*s.Model.Config.Vocab)
		a := eval.Answer{Doc: map[string]any{"text": d.texts[w]}}
		for k := range d.list {
			v := &d.list[k]
			if !v.possible(s) {
				continue
			}
			if err := errors.Join(ctx.Err(), v.set(s)); err != nil {
				return nil, err
			}
			if k == 0 {
				if err := s.Model.Logits(b, plain); err != nil {
					return nil, err
				}
				continue
			}
			if err := s.Model.Logits(b, other); err != nil {
				return nil, err
			}
			a.Put(klName(v), klSum(plain, other, s.Model.Config.Vocab), float64(b.T))
		}
		out = append(out, a)
	}
	return out, nil
}

// klSum is Σ KL over rows of logits. Rows are computed on all cores and added in their order.
func klSum(p, q []float32, vocab int) float64 {
	rows := make([]float64, len(p)/vocab)
	cores.Each(len(rows), func(r int) { rows[r] = klRow(p[r*vocab:][:vocab], q[r*vocab:][:vocab]) })
	sum := 0.0
	for _, x := range rows {
		sum += x
	}
	return sum
}

// klRow is the divergence of one row of logits.
func klRow(p, q []float32) float64 {
	zp, zq, sum := logSum(p), logSum(q), 0.0
	for i := range p {
		lp := float64(p[i]) - zp
		sum += math.Exp(lp) * (lp - (float64(q[i]) - zq))
	}
	return sum
}

// logSum is log Σ exp(x).
func logSum(x []float32) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, float64(v))
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}
