package model

import (
	"fmt"
	"math"

	"antiphase/layer"
)

// Frequencies returns the rotary angles per position and the factor on their cosines and sines, for the scaling types
// of Hugging Face configurations: default, linear, llama3, yarn. (dynamic depends on the current length; within the
// trained context it equals default.)
func (c Config) Frequencies() (freq []float64, factor float64, err error) {
	if c.HeadDim <= 0 || c.RopeTheta <= 0 {
		return nil, 1, nil
	}
	freq = layer.Frequencies(c.HeadDim, c.RopeTheta)
	s := c.RopeScaling
	if s == nil {
		return freq, 1, nil
	}
	if s.Type != "default" && s.Factor < 1 {
		return nil, 1, fmt.Errorf("rope_scaling.factor: is %g for type %q, must be at least 1", s.Factor, s.Type)
	}
	switch s.Type {
	case "default", "dynamic":
		return freq, 1, nil
	case "linear":
		for i := range freq {
			freq[i] /= s.Factor
		}
		return freq, 1, nil
	case "llama3":
		return llama3(freq, s), 1, s.need("original_context", s.OriginalContext > 0,
			"low_freq_factor and high_freq_factor", s.HighFreqFactor > s.LowFreqFactor)
	case "yarn":
		f, m := yarn(freq, s, c)
		return f, m, nil
	}
	return nil, 1, fmt.Errorf("rope_scaling.type: is %q, must be default, linear, dynamic, llama3 or yarn", s.Type)
}

func (s *RopeScaling) need(a string, okA bool, b string, okB bool) error {
	if !okA {
		return fmt.Errorf("rope_scaling.%s: missing for type %q", a, s.Type)
	}
	if !okB {
		return fmt.Errorf("rope_scaling.%s: missing or out of order for type %q", b, s.Type)
	}
	return nil
}

// llama3 keeps short wavelengths, divides long ones by the factor and interpolates between.
func llama3(freq []float64, s *RopeScaling) []float64 {
	old := float64(s.OriginalContext)
	for i, f := range freq {
		wave := 2 * math.Pi / f
		switch {
		case wave > old/s.LowFreqFactor:
			freq[i] = f / s.Factor
		case wave >= old/s.HighFreqFactor:
			t := (old/wave - s.LowFreqFactor) / (s.HighFreqFactor - s.LowFreqFactor)
			freq[i] = (1-t)*f/s.Factor + t*f
		}
	}
	return freq
}

// yarn blends interpolated and original frequencies along a ramp over the dimensions. The returned factor scales the
// cosines and sines, and so the attention logits.
func yarn(freq []float64, s *RopeScaling, c Config) ([]float64, float64) {
	fast, slow := s.BetaFast, s.BetaSlow
	set(&fast, 32)
	set(&slow, 1)
	old := float64(s.OriginalContext)
	if old == 0 {
		old = float64(c.Context)
	}
	dim := float64(c.HeadDim)
	at := func(rot float64) float64 { // the dimension that rotates rot times over the old context
		return dim * math.Log(old/(rot*2*math.Pi)) / (2 * math.Log(c.RopeTheta))
	}
	low, high := at(fast), at(slow)
	if s.Truncate == nil || *s.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, dim-1)
	if low == high {
		high += 0.001
	}
	for i, f := range freq {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		freq[i] = f/s.Factor*ramp + f*(1-ramp)
	}
	return freq, yarnTemperature(s)
}

func yarnTemperature(s *RopeScaling) float64 {
	if s.AttentionFactor != 0 {
		return s.AttentionFactor
	}
	mscale := func(m float64) float64 { return 0.1*m*math.Log(s.Factor) + 1 } // 1 for a factor of 1, which is the least
	if s.MScale != 0 && s.MScaleAllDim != 0 {
		return mscale(s.MScale) / mscale(s.MScaleAllDim)
	}
	return mscale(1)
}
