package model

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Lambdas appends the mean λ of every layer in the last pass; nothing for an architecture without λ.
func (m *Model) Lambdas(dst []float64) []float64 {
	dst, _, _ = m.LambdaRange(dst)
	return dst
}

// LambdaRange is Lambdas with the minimum and maximum over layers and heads; NaN for an architecture without λ. Where λ
// depends on the token, a head's λ is its mean over rows.
func (m *Model) LambdaRange(dst []float64) (mean []float64, lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	for i, b := range m.blocks {
		if sum, _ := b.Attn.Lambda(m.rows); sum.Ok() {
			m.lams.put(m.dev, sum, i, len(m.blocks))
		}
	}
	if !m.lams.dev.Ok() {
		return dst, lo, hi
	}
	device.ReadFloats(m.dev, m.lams.host, m.lams.dev) // one wait for all layers
	heads := m.lams.dev.Cols
	lo, hi = math.Inf(1), math.Inf(-1)
	for i, b := range m.blocks {
		_, over := b.Attn.Lambda(m.rows)
		total := 0.0
		for _, x := range m.lams.host[i*heads : (i+1)*heads] {
			head := float64(x) / float64(over)
			total += head / float64(heads)
			lo, hi = min(lo, head), max(hi, head)
		}
		dst = append(dst, total)
	}
	return dst, lo, hi
}

// lambdas are the layers' sums of λ, gathered so that one copy brings them to the host.
type lambdas struct {
	dev  tensor.Tensor // Stat [layers, heads]
	host []float32
}

// put copies a layer's sums into its row.
func (l *lambdas) put(d device.Device, sum tensor.Tensor, i, layers int) {
	if !l.dev.Ok() {
		l.dev, l.host = device.Empty(d, sum.Type, layers, sum.Cols), make([]float32, layers*sum.Cols)
	}
	d.Copy(l.dev.RowRange(i, i+1), sum)
}

func (l *lambdas) free(d device.Device) {
	if l.dev.Ok() {
		d.Free(l.dev.Buf)
	}
	*l = lambdas{}
}
