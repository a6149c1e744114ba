// Package model is the network: configuration, parameter table, blocks, and the passes over them.
//
// New builds the structure and its memory on a device. A Model runs batches: Backprop adds to the gradients, Score
// computes the loss of every token. A Cache of a model holds paged keys and values, and Step decodes rows against them.
// All differences between Transformer, DIFF and DIFF V2 are in package layer: nothing here tests for an architecture.
package model

import (
	"fmt"

	"antiphase/layer"
)

// Config is a model's architecture. Complete fills optional fields that are zero.
type Config struct {
	Arch     string `json:"arch" doc:"attention architecture; recipes lists them"`
	Vocab    int    `json:"vocab" doc:"number of token ids"`
	Context  int    `json:"context" doc:"longest sequence, in tokens"`
	Layers   int    `json:"layers" doc:"number of blocks"`
	Dim      int    `json:"dim" doc:"model width"`
	Heads    int    `json:"heads" doc:"output heads; for diff and diff2 the pairs"`
	KVHeads  int    `json:"kv_heads" doc:"key/value groups; default heads"`
	HeadDim  int    `json:"head_dim" doc:"width of one query or key head"`
	FFN      int    `json:"ffn" doc:"inner width of the MLP; default 8/3 of dim, rounded up to 32"`
	TieEmbed bool   `json:"tie_embeddings" doc:"output projection is the embedding table"`
	Bias     bool   `json:"attention_bias" doc:"biases on the attention's projections"`

	RopeTheta       float64      `json:"rope_theta" doc:"base of the rotary frequencies; default 10000"`
	RopeInterleaved bool         `json:"rope_interleaved" doc:"rotate neighbours (released code) instead of halves (Llama)"`
	RopeScaling     *RopeScaling `json:"rope_scaling,omitempty" doc:"positions beyond the trained context, as in {\"type\":\"linear\",\"factor\":2}; null for none"`
	NormEps         float64      `json:"norm_eps" doc:"epsilon of the block norms; default 1e-5"`

	HeadNorm     layer.HeadNormMode `json:"head_norm" doc:"norm over each head's output: off, plain or affine"`
	HeadNormEps  float64            `json:"head_norm_eps" doc:"its epsilon; default 1e-5"`
	LambdaInit   string             `json:"lambda_init" doc:"schedule (0.8 - 0.6 exp(-0.3 layer)) or constant"`
	LambdaConst  float64            `json:"lambda_const" doc:"lambda_init of every layer when constant"`
	LambdaStd    float64            `json:"lambda_std" doc:"deviation of the initial lambda vectors; default 0.1"`
	LambdaForm   layer.LambdaForm   `json:"lambda_form,omitempty" doc:"diff2's lambda: empty (sigmoid), linear or none (1)"`
	Pairing      layer.Pairing      `json:"pairing,omitempty" doc:"diff2's pairs: empty (inside a group) or across (first half minus second half)"`
	InitResidual bool               `json:"init_residual" doc:"shrink initial output projections by 1/sqrt(2 layers)"`
}

// RopeScaling stretches rotary positions beyond the trained context; see rope.go for the types.
type RopeScaling struct {
	Type            string  `json:"type"`
	Factor          float64 `json:"factor,omitempty"`
	LowFreqFactor   float64 `json:"low_freq_factor,omitempty"`
	HighFreqFactor  float64 `json:"high_freq_factor,omitempty"`
	OriginalContext int     `json:"original_context,omitempty"`
	BetaFast        float64 `json:"beta_fast,omitempty"`
	BetaSlow        float64 `json:"beta_slow,omitempty"`
	AttentionFactor float64 `json:"attention_factor,omitempty"`
	MScale          float64 `json:"mscale,omitempty"`
	MScaleAllDim    float64 `json:"mscale_all_dim,omitempty"`
	Truncate        *bool   `json:"truncate,omitempty"`
}

// Values of LambdaInit.
const (
	LambdaSchedule = "schedule"
	LambdaConstant = "constant"
)

// Limits on configurations, checked before anything is allocated.
const (
	maxLayers = 1 << 14
	maxRope   = 1 << 28 // context × head_dim: entries of the table of rotary angles
)

// Complete fills omitted fields with their defaults and checks the result.
func (c Config) Complete() (Config, error) {
	if a, err := layer.LookupArch(c.Arch); err == nil {
		set(&c.KVHeads, a.DefaultGroups(c.Heads))
		set(&c.HeadNorm, a.HeadNorm)
	}
	set(&c.FFN, (c.Dim*8/3+31)/32*32)
	set(&c.RopeTheta, 10000)
	set(&c.NormEps, 1e-5)
	set(&c.HeadNormEps, 1e-5)
	set(&c.LambdaInit, LambdaSchedule)
	set(&c.LambdaStd, 0.1)
	return c, c.Check()
}

func set[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// Check returns an error that names the wrong field and the values it allows.
func (c Config) Check() error {
	const most = 1 << 31
	if c.Dim > most { // before ffn, whose default is a multiple of dim and may have overflowed
		return fmt.Errorf("dim: is %d, must be at most %d", c.Dim, most)
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"vocab", c.Vocab}, {"context", c.Context}, {"layers", c.Layers}, {"dim", c.Dim}, {"ffn", c.FFN}} {
		if f.v <= 0 {
			return fmt.Errorf("%s: is %d, must be positive", f.name, f.v)
		}
	}
	if c.Layers > maxLayers {
		return fmt.Errorf("layers: is %d, must be at most %d", c.Layers, maxLayers)
	}
	if c.Context > maxRope/max(c.HeadDim, 1) {
		return fmt.Errorf("context: %d times head_dim = %d is more than %d rotary angles", c.Context,
			c.HeadDim, maxRope)
	}
	for _, f := range []struct {
		name string
		a, b int
	}{{"vocab × dim", c.Vocab, c.Dim}, {"ffn × dim", c.FFN, c.Dim}, {"heads × head_dim", c.Heads, c.HeadDim},
		{"context × dim", c.Context, c.Dim}} {
		if f.a > most || f.b > most || f.a*f.b > 1<<40 {
			return fmt.Errorf("%s: %d × %d is beyond any memory", f.name, f.a, f.b)
		}
	}
	if c.RopeTheta <= 0 || c.NormEps < 0 || c.HeadNormEps < 0 || c.LambdaStd < 0 {
		return fmt.Errorf(
			"rope_theta = %g must be positive; norm_eps = %g, head_norm_eps = %g, lambda_std = %g not negative",
			c.RopeTheta, c.NormEps, c.HeadNormEps, c.LambdaStd)
	}
	if c.LambdaInit != LambdaSchedule && c.LambdaInit != LambdaConstant {
		return fmt.Errorf("lambda_init: is %q, must be %q or %q", c.LambdaInit, LambdaSchedule, LambdaConstant)
	}
	if _, _, err := c.Frequencies(); err != nil {
		return err
	}
	a, err := c.attn(0)
	if err != nil {
		return err
	}
	return a.Check()
}

// attn is the configuration of one attention layer.
func (c Config) attn(l int) (layer.AttnConfig, error) {
	arch, err := layer.LookupArch(c.Arch)
	return layer.AttnConfig{
		Arch: arch, Layer: l, Dim: c.Dim, Heads: c.Heads, Groups: c.KVHeads, HeadDim: c.HeadDim, Bias: c.Bias,
		HeadNorm: c.HeadNorm, HeadNormEps: c.HeadNormEps,
		LambdaInit: c.LambdaInitAt(l), LambdaStd: c.LambdaStd, LambdaForm: c.LambdaForm, Pairing: c.Pairing,
		OutGain: c.residualGain(),
	}, err
}

// LambdaInitAt is λ_init of layer l.
func (c Config) LambdaInitAt(l int) float64 {
	if c.LambdaInit == LambdaConstant {
		return c.LambdaConst
	}
	return layer.LambdaSchedule(l)
}
