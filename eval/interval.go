package eval

import "math"

// interval is the 95 % interval of a mean of independent samples by Student's t; 0, 0 if the error is unknown.
func interval(m Mean) (low, high float64) { return intervalOf(m, m.N) }

// intervalOf is interval for a mean whose samples form this many independent clusters.
func intervalOf(m Mean, clusters int) (low, high float64) {
	if clusters < 2 || m.StdErr == 0 {
		return 0, 0
	}
	d := StudentQuantile(0.975, float64(clusters-1)) * m.StdErr
	return m.Value - d, m.Value + d
}

// Wilson is the 95 % score interval of k successes in n trials.
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	N, p := float64(n), float64(k)/float64(n)
	mid := (p + z*z/(2*N)) / (1 + z*z/N)
	half := z / (1 + z*z/N) * math.Sqrt(p*(1-p)/N+z*z/(4*N*N))
	return max(0, mid-half), min(1, mid+half)
}

// meanInterval is the 95 % interval of a measure over answers: Wilson's for right-or-wrong answers that are
// independent, otherwise Student's over clusters.
func meanInterval(answers []Answer, name string, m Mean) (low, high float64) {
	hits, binary := 0, true
	seen := map[string]bool{}
	for i := range answers {
		x, ok := answers[i].Values[name]
		if !ok {
			continue
		}
		cluster := answers[i].cluster()
		binary = binary && (x == 0 || x == 1) && answers[i].Weight(name) == 1 && !seen[cluster]
		seen[cluster] = true
		hits += int(x)
	}
	switch {
	case m.N == 0:
		return 0, 0
	case binary:
		return Wilson(hits, m.N)
	}
	return intervalOf(m, len(seen))
}

// StudentQuantile is the p-quantile of Student's t with df degrees of freedom, by bisection of its distribution
// function.
func StudentQuantile(p, df float64) float64 {
	if p < 0.5 {
		return -StudentQuantile(1-p, df)
	}
	lo, hi := 0.0, 1.0
	for studentTail(hi, df) > 1-p && hi < 1e12 {
		hi *= 2
	}
	for range 200 {
		mid := (lo + hi) / 2
		if mid == lo || mid == hi { // adjacent floating-point numbers
			break
		}
		if studentTail(mid, df) > 1-p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// studentTail is P(T > t) for t ≥ 0: half the regularised incomplete beta function I_{df/(df+t²)}(df/2, 1/2).
func studentTail(t, df float64) float64 {
	if df > 1e7 {
		return math.Erfc(t/math.Sqrt2) / 2
	}
	return incompleteBeta(df/2, 0.5, df/(df+t*t)) / 2
}

// incompleteBeta is the regularised incomplete beta function I_x(a,b), by Lentz's continued fraction.
func incompleteBeta(a, b, x float64) float64 {
	if x > (a+1)/(a+b+2) {
		return 1 - incompleteBeta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := range 400 {
		m := float64(i / 2)
		var num float64
		switch {
		case i == 0:
			num = 1
		case i%2 == 0:
			num = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			num = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		if d = 1 + num*d; math.Abs(d) < tiny {
			d = tiny
		}
		d = 1 / d
		if c = 1 + num/c; math.Abs(c) < tiny {
			c = tiny
		}
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}
