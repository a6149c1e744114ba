package eval

import (
	"math"
	"math/rand/v2"
)

// Decision is a right class and the predicted one. Tasks store it as the detail of an answer, for statistics of the
// whole set.
type Decision struct {
	Gold int `json:"gold"`
	Said int `json:"said"`
}

// resamples is the number of bootstrap draws for the error of a statistic of the whole set.
const resamples = 400

// OfDecisions is a statistic of all decisions, with a bootstrap error over samples.
func OfDecisions(r *Result, total func(gold, said []int) float64) (Mean, error) {
	list, err := Details[Decision](r.Answers)
	if err != nil {
		return Mean{}, err
	}
	gold, said := make([]int, len(list)), make([]int, len(list))
	for i, d := range list {
		gold[i], said[i] = d.Gold, d.Said
	}
	out := Mean{Value: total(gold, said), N: len(list)}
	g := rand.New(rand.NewPCG(1, uint64(len(list))))
	var sum, squares float64
	for range resamples {
		for i := range list {
			d := list[g.IntN(len(list))]
			gold[i], said[i] = d.Gold, d.Said
		}
		x := total(gold, said)
		sum += x
		squares += x * x
	}
	mean := sum / resamples
	out.StdErr = math.Sqrt(max(0, squares/resamples-mean*mean))
	return out, nil
}

// F1 is the harmonic mean of precision and recall of one class; 0 if neither side has it.
func F1(gold, said []int, class int) float64 {
	both, either := 0, 0
	for i := range gold {
		if gold[i] == class {
			either++
		}
		if said[i] == class {
			either++
		}
		if gold[i] == class && said[i] == class {
			both++
		}
	}
	if either == 0 {
		return 0
	}
	return 2 * float64(both) / float64(either)
}

// MacroF1 is the mean of F1 over classes 0 to n−1.
func MacroF1(gold, said []int, n int) float64 {
	sum := 0.0
	for class := range n {
		sum += F1(gold, said, class)
	}
	return sum / float64(n)
}

// Matthews is the correlation of two classifications with any number of classes; 0 if one of them is constant.
func Matthews(gold, said []int) float64 {
	classes := 0
	for i := range gold {
		classes = max(classes, gold[i]+1, said[i]+1)
	}
	n, right := float64(len(gold)), 0.0
	g, p := make([]float64, classes), make([]float64, classes)
	for i := range gold {
		g[gold[i]]++
		p[said[i]]++
		if gold[i] == said[i] {
			right++
		}
	}
	var pg, pp, gg float64
	for k := range g {
		pg += p[k] * g[k]
		pp += p[k] * p[k]
		gg += g[k] * g[k]
	}
	d := math.Sqrt((n*n - pp) * (n*n - gg))
	if d == 0 {
		return 0
	}
	return (right*n - pg) / d
}
