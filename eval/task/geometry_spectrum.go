package task

import (
	"cmp"
	"math"
	"slices"
)

// spectrum is the singular values of an n × m matrix given by rows, largest first: square roots of the eigenvalues of
// the smaller of its two Gram matrices. Values below 1e-7 of the largest are noise, and count as 0.
func spectrum(rows [][]float64) []float64 {
	g := gram(rows)
	values := eigenvalues(g)
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })
	least := 1e-14 * values[0]
	for i, v := range values {
		if v < least {
			v = 0
		}
		values[i] = math.Sqrt(max(v, 0))
	}
	return values
}

// gram is X·Xᵀ or XᵀX, whichever is smaller.
func gram(rows [][]float64) [][]float64 {
	n, m := len(rows), len(rows[0])
	if n > m {
		t := make([][]float64, m)
		for j := range t {
			t[j] = make([]float64, n)
			for i := range rows {
				t[j][i] = rows[i][j]
			}
		}
		rows, n = t, m
	}
	g := make([][]float64, n)
	for i := range g {
		g[i] = make([]float64, n)
		for j := range i + 1 {
			sum := 0.0
			for k, x := range rows[i] {
				sum += x * rows[j][k]
			}
			g[i][j], g[j][i] = sum, sum
		}
	}
	return g
}

// eigenvalues of a symmetric matrix, unordered; the matrix is overwritten. Householder reflections make it tridiagonal,
// with diagonal d and e[i] between i−1 and i; then implicit QL steps with Wilkinson's shift drive e to zero.
func eigenvalues(a [][]float64) []float64 {
	n := len(a)
	d, e := make([]float64, n), make([]float64, n)
	for i := n - 1; i > 0; i-- {
		e[i] = householder(a, i)
	}
	for i := range d {
		d[i] = a[i][i]
	}
	copy(e, e[1:])
	e[n-1] = 0
	for l := range n {
		for range 60 {
			m := l
			for m < n-1 && math.Abs(e[m]) > 1e-15*(math.Abs(d[m])+math.Abs(d[m+1])) {
				m++
			}
			if m == l {
				break
			}
			sweep(d, e, l, m)
		}
	}
	return d
}

// householder clears row i left of its last two entries: A ← HAH on the leading i × i block, H = 1 − 2uuᵀ, u along
// (a_i0 … a_i,i−1) − σ·last. It returns the entry beside the diagonal.
func householder(a [][]float64, i int) float64 {
	u := slices.Clone(a[i][:i])
	norm := 0.0
	for _, x := range u {
		norm += x * x
	}
	norm = math.Sqrt(norm)
	if norm == 0 || i == 1 {
		return u[i-1]
	}
	beside := -math.Copysign(norm, u[i-1])
	u[i-1] -= beside
	length := 0.0
	for _, x := range u {
		length += x * x
	}
	// With p = 2Au/uᵀu and q = p − (uᵀp/uᵀu)u: HAH = A − uqᵀ − quᵀ.
	p, up := make([]float64, i), 0.0
	for r := range p {
		for c, x := range u {
			p[r] += a[r][c] * x
		}
		p[r] *= 2 / length
		up += u[r] * p[r]
	}
	for r := range p {
		p[r] -= up / length * u[r]
	}
	for r := range p {
		for c := range p {
			a[r][c] -= u[r]*p[c] + p[r]*u[c]
		}
	}
	return beside
}

// sweep is one implicit QL step on the unreduced block l … m.
func sweep(d, e []float64, l, m int) {
	g := (d[l+1] - d[l]) / (2 * e[l])
	g = d[m] - d[l] + e[l]/(g+math.Copysign(math.Hypot(g, 1), g))
	s, c, p := 1.0, 1.0, 0.0
	for i := m - 1; i >= l; i-- {
		f, b := s*e[i], c*e[i]
		r := math.Hypot(f, g)
		e[i+1] = r
		if r == 0 {
			d[i+1] -= p
			e[m] = 0
			return
		}
		s, c = f/r, g/r
		g = d[i+1] - p
		r = (d[i]-g)*s + 2*c*b
		p = s * r
		d[i+1] = g + p
		g = c*r - b
	}
	d[l] -= p
	e[l] = g
	e[m] = 0
}

// spectralGap is 1 − σ2/σ1: 1 for a matrix of rank one, 0 where two directions are equally strong.
func spectralGap(sigma []float64) float64 {
	if len(sigma) < 2 || sigma[0] == 0 {
		return 1
	}
	return 1 - sigma[1]/sigma[0]
}

// effectiveRank is exp(−Σ p·log p) with p = σ/Σσ (Roy and Vetterli): the rank, where directions are equally strong.
func effectiveRank(sigma []float64) float64 {
	sum, entropy := 0.0, 0.0
	for _, x := range sigma {
		sum += x
	}
	for _, x := range sigma {
		if x > 0 {
			entropy -= x / sum * math.Log(x/sum)
		}
	}
	if sum == 0 {
		return 0
	}
	return math.Exp(entropy)
}
