package model

import "math"

// Lambdas appends the mean λ of every layer in the last pass; nothing for an architecture without λ.
func (m *Model) Lambdas(dst []float64) []float64 {
	dst, _, _ = m.LambdaRange(dst)
	return dst
}

// LambdaRange is Lambdas with the minimum and maximum over layers and heads; NaN for an architecture without λ.
func (m *Model) LambdaRange(dst []float64) (mean []float64, lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for i, b := range m.blocks {
		s, ok := b.Attn.Lambda(m.dev, m.rows, m.lamBuf)
		if !ok {
			continue
		}
		if dst = append(dst, s.Mean); i == 0 {
			lo, hi = s.Min, s.Max
		}
		lo, hi = min(lo, s.Min), max(hi, s.Max)
	}
	return dst, lo, hi
}
