package hf

import (
	"fmt"
	"math"
	"strconv"

	"antiphase/layer"
	"antiphase/model"
)

// noClass returns what no class supports, not even the one whose code is in the folder: heads must have their own
// adjacent queries.
func noClass(c model.Config) string {
	a, err := layer.LookupArch(c.Arch)
	switch {
	case err != nil:
		return err.Error()
	case c.LambdaForm != layer.LambdaSigmoid || c.Pairing != layer.PairingGroup:
		return fmt.Sprintf("lambda_form = %q, pairing = %q: an ablation of DIFF V2", c.LambdaForm, c.Pairing)
	case a.QueryHeads(c.Heads, c.KVHeads) != c.Heads*a.Maps:
		return fmt.Sprintf("%d heads in %d groups share query heads: %s", c.Heads, c.KVHeads, a.Doc)
	}
	return ""
}

// nativeClass is the class of transformers that computes the same function, or "" and what it lacks. The parameter
// table and the geometry decide, not the architecture's name.
func nativeClass(c model.Config) (class Class, why string) {
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		return "", err.Error()
	}
	switch {
	case a.Maps == 1 && a.Keys == 1 && a.Values == 1:
		if c.HeadNorm != layer.HeadNormOff {
			return "", fmt.Sprintf("%s has no norm over a head's output, head_norm = %q", Llama, c.HeadNorm)
		}
		return Llama, ""
	case a.Maps == 2 && a.Keys == 2 && a.Values == 2 && lambdaKind(c) == lambdaVectors:
		if c.HeadNorm == layer.HeadNormOff {
			return "", fmt.Sprintf("%s always has a norm over a head's output, head_norm = %q", DiffLlama, c.HeadNorm)
		}
		if c.NormEps != c.HeadNormEps && (c.NormEps == 0 || c.HeadNormEps == 0) {
			return "", fmt.Sprintf("%s has one epsilon, norm_eps = %g and head_norm_eps = %g", DiffLlama, c.NormEps,
				c.HeadNormEps)
		}
		return DiffLlama, ""
	}
	return "", "transformers has no class for " + a.Doc
}

// exportLayout maps a model's rows to a class's folder.
func exportLayout(c model.Config, class Class) (layout, error) {
	l, err := canonical(c, llamaNames)
	if err != nil || class == Antiphase {
		return l, err
	}
	l.relay = c.RopeInterleaved
	l.halves = class == DiffLlama
	if l.halves {
		c.HeadNorm = layer.HeadNormPlain // the class has no gain, so it is folded
		l.extras = extras(c)
	}
	return l, nil
}

// fold folds into DiffLlama's tensors what the class cannot represent:
//
//	o_proj:  columns times the head norm's gain, and times (1−λ_init)/(1−λ'_init) if λ_init is not the class's
//	v_proj:  times √(norm_eps/head_norm_eps), since RMSNorm(s·x; ε) = RMSNorm(x; ε/s²) and the class has one ε
//	λ:       exp(a) − exp(b) + λ_init is kept by moving the difference of the λ_init into a or b
func (e *Export) fold(byName map[string]*target) {
	c := e.Config
	for i := range c.Layers {
		at := llamaNames.root + "layers." + strconv.Itoa(i) + ".self_attn."
		ours := "layers." + strconv.Itoa(i) + ".attn."
		theirInit, init := layer.LambdaSchedule(i), c.LambdaInitAt(i)
		out := byName[at+"o_proj.weight"]
		if c.HeadNorm == layer.HeadNormAffine {
			out.fold = append(out.fold, e.scaleColumns(ours+"head_norm.weight"))
		}
		if init != theirInit {
			out.fold = append(out.fold, scale((1-init)/(1-theirInit)))
			e.shiftLambda(byName, at, ours, init-theirInit)
		}
		if c.NormEps != c.HeadNormEps {
			for _, kind := range []string{"weight", "bias"} {
				if v := byName[at+"v_proj."+kind]; v != nil {
					v.fold = append(v.fold, scale(math.Sqrt(c.NormEps/c.HeadNormEps)))
				}
			}
		}
	}
}

func scale(s float64) func([]float32) error {
	return func(x []float32) error {
		for i := range x {
			x[i] = float32(s * float64(x[i]))
		}
		return nil
	}
}

// scaleColumns multiplies every row by a gain of one head's width, repeated for every head.
func (e *Export) scaleColumns(param string) func([]float32) error {
	return func(x []float32) error {
		gain, err := e.Values(param)
		if err != nil {
			return err
		}
		if len(gain) == 0 || len(x)%len(gain) != 0 {
			return fmt.Errorf("parameter %q has %d values, which do not divide %d", param, len(gain), len(x))
		}
		for i := range x {
			x[i] *= gain[i%len(gain)]
		}
		return nil
	}
}

// shiftLambda adds by to λ: exp(a) grows if by is positive, exp(b) if it is negative, so that both logarithms exist.
// The changed pair of vectors becomes (log, 0, …) and (1, 0, …).
func (e *Export) shiftLambda(byName map[string]*target, at, ours string, by float64) {
	q, k := "lambda_q1", "lambda_k1"
	if by < 0 {
		q, k = "lambda_q2", "lambda_k2"
	}
	unit := func(first func() (float64, error)) func([]float32) error {
		return func(x []float32) error {
			v, err := first()
			clear(x)
			x[0] = float32(v)
			return err
		}
	}
	byName[at+q].fold = append(byName[at+q].fold, unit(func() (float64, error) {
		dot, err := dot(e.Values, ours+q, ours+k)
		return math.Log(math.Exp(dot) + math.Abs(by)), err
	}))
	byName[at+k].fold = append(byName[at+k].fold, unit(func() (float64, error) { return 1, nil }))
}
