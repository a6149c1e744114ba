package cpu

import (
	"math"

	"antiphase/device"
	"antiphase/internal/simd"
)

// split is the part of a classifier whose classes are split over ranks, see device.Classifier. The zero split is a
// classifier with all classes.
type split struct {
	on     bool
	part   []float32 // [2,n]; nil in the second call
	parts  []float32 // [2P,n]; nil in the first
	ld, at int       // row pitch in elements; the first row of a chunk
}

func splitOf(c *device.Classifier) split {
	s := split{on: c.Split()}
	if c.Part.Ok() {
		s.part, s.ld = f32(c.Part), c.Part.Ld
	}
	if c.Parts.Ok() {
		s.parts, s.ld = f32(c.Parts), c.Parts.Ld
	}
	return s
}

// from is the split of a chunk that begins at row n.
func (s split) from(n int) split {
	s.at += n
	return s
}

// put stores the result of this rank's classes for row n.
func (s *split) put(n int, lse, hit float64) {
	s.part[s.at+n], s.part[s.ld+s.at+n] = float32(lse), float32(hit)
}

// all is the logarithm of the sum over the classes of all ranks, and the target's logit.
func (s *split) all(n int) (lse, hit float64) {
	n += s.at
	top, sum := math.Inf(-1), 0.0
	for r := 0; r < len(s.parts); r += 2 * s.ld {
		top = math.Max(top, float64(s.parts[r+n]))
	}
	for r := 0; r < len(s.parts); r += 2 * s.ld {
		sum += math.Exp(float64(s.parts[r+n]) - top)
		hit += float64(s.parts[r+s.ld+n])
	}
	return top + math.Log(sum), hit
}

// losses is the second call without gradients: the parts suffice.
func (s *split) losses(loss []float32, targets []int32) {
	for n, target := range targets {
		loss[n] = 0
		if scored(target) {
			lse, hit := s.all(n)
			loss[n] = float32(lse - hit)
		}
	}
}

// scored reports whether a row has a target, here or on another rank.
func scored(target int32) bool { return target >= 0 || target == device.Elsewhere }

// splitTile is tile for row n if the classes are split.
func (t *classifyTask) splitTile(n int, y []float32, target int) {
	if target >= len(y) || !scored(int32(target)) {
		t.unscored(n, y)
		return
	}
	hit := float32(0)
	if target >= 0 {
		hit = y[target]
	}
	if t.split.part != nil {
		top := simd.Max(y)
		sum := simd.ExpSum(y, y, 1, top)
		t.split.put(n, math.Log(float64(sum))+float64(top), float64(hit))
		return
	}
	lse, at := t.split.all(n)
	t.loss[n] = float32(lse - at)
	simd.ExpSum(y, y, 1, float32(lse))
	simd.Scale(y, float32(t.scale))
	if target >= 0 {
		y[target] -= float32(t.scale)
	}
}

// unscored is a row without a target.
func (t *classifyTask) unscored(n int, y []float32) {
	if t.split.part != nil {
		t.split.put(n, 0, 0)
	} else {
		t.loss[n] = 0
	}
	clear(y)
}
