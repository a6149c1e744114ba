package eval

import (
	"antiphase/layer"
	"antiphase/model"
)

// Ablation is one row of the paper's Table 6: a change to the model of a pair, all else being equal.
type Ablation struct {
	Name       string // of its run folder
	Doc        string
	Challenger bool // a change to the differential model, else to the baseline
	Change     func(c *model.Config)
}

// Ablations are the seven rows. Where the paper says GroupNorm it is the norm over each head's output.
func Ablations() []Ablation {
	wide := func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim = c.Heads/2, c.KVHeads/2, c.HeadDim*2 }
	constant := func(x float64) func(c *model.Config) {
		return func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, x }
	}
	return []Ablation{
		{"base", "baseline", false, func(*model.Config) {}},
		{"base-wide", "half the heads, twice as wide", false, wide},
		{"base-wide-norm", "and a norm over each head", false, func(c *model.Config) { wide(c); c.HeadNorm = layer.HeadNormAffine }},
		{"diff", "differential, λ_init by depth", true, func(*model.Config) {}},
		{"diff-no-norm", "without the norm over each head", true, func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }},
		{"diff-lambda-0.8", "λ_init = 0.8 in all layers", true, constant(0.8)},
		{"diff-lambda-0.5", "λ_init = 0.5 in all layers", true, constant(0.5)},
	}
}
