package eval

import (
	"fmt"

	"antiphase/layer"
	"antiphase/model"
)

// Ablation is one row of a table of ablations: a change to one of the two models, everything else being equal.
type Ablation struct {
	Name       string // of its run folder
	Doc        string
	Challenger bool // changes the differential model, else the baseline
	Change     func(c *model.Config)
}

// Ablations are the published ones of an architecture.
func Ablations(arch string) ([]Ablation, error) {
	switch arch {
	case "diff":
		return table6(), nil
	case "diff2":
		return ablationsV2(), nil
	}
	return nil, fmt.Errorf("no ablations of %q are published; there are those of diff and diff2", arch)
}

// table6 is the paper's Table 6. The paper's GroupNorm is the norm over each head's output.
func table6() []Ablation {
	wide := func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim = c.Heads/2, c.KVHeads/2, c.HeadDim*2 }
	constant := func(x float64) func(c *model.Config) {
		return func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, x }
	}
	return []Ablation{
		{"base", "baseline", false, func(*model.Config) {}},
		{"base-wide", "half the heads, twice as wide", false, wide},
		{"base-wide-norm", "and a norm over each head", false,
			func(c *model.Config) { wide(c); c.HeadNorm = layer.HeadNormAffine }},
		{"diff", "differential, λ_init by depth", true, func(*model.Config) {}},
		{"diff-no-norm", "without the norm over each head", true,
			func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }},
		{"diff-lambda-0.8", "λ_init = 0.8 in all layers", true, constant(0.8)},
		{"diff-lambda-0.5", "λ_init = 0.5 in all layers", true, constant(0.5)},
	}
}

// ablationsV2 are DIFF V2's, which its page ranks without numbers. All have half as many groups as V2 has heads:
// pairing across groups needs groups, and 1.5 times the heads must be a whole number of heads per group.
func ablationsV2() []Ablation {
	grouped := func(change func(c *model.Config)) func(c *model.Config) {
		return func(c *model.Config) {
			c.KVHeads = max(c.Heads/2, 1)
			change(c)
		}
	}
	return []Ablation{
		{"v2-base", "Transformer of h heads", false, grouped(func(*model.Config) {})},
		{"v2-base-1.5h", "Transformer of 1.5 h heads: V2's size", false, grouped(halfMore)},
		{"v2", "DIFF V2", true, grouped(func(*model.Config) {})},
		{"v2-no-lambda", "without λ: A1 − A2", true,
			grouped(func(c *model.Config) { c.LambdaForm = layer.LambdaNone })},
		{"v2-linear-lambda", "λ without its sigmoid", true,
			grouped(func(c *model.Config) { c.LambdaForm = layer.LambdaLinear })},
		{"v2-across", "pairs across groups", true, grouped(func(c *model.Config) { c.Pairing = layer.PairingAcross })},
	}
}

// halfMore gives a Transformer 1.5 times the heads. They cost as much as V2's second queries and are taken from the
// MLP, as V2's are.
func halfMore(c *model.Config) {
	const step = 8
	extra := (c.Heads / 2) * 2 * c.HeadDim // rows of W_Q and columns of W_O, each dim long
	c.Heads += c.Heads / 2
	c.FFN -= extra / 3 / step * step
}
