package hf

import (
	"fmt"
	"strings"

	"antiphase/layer"
	"antiphase/model"
)

// parseReleased reads the configuration of a model built from the authors' released attention modules: their names
// (q_proj … out_proj, lambda_q1 …, subln), with adjacent pairs and their order of heads. It has no model_type;
// docs/format/released.md lists its keys.
func (f *Folder) parseReleased(o *object) error {
	c := model.Config{
		Arch: o.text("arch", ""), Vocab: o.count("vocab", 0, maxCount), Context: o.count("context", 2048, maxCount),
		Layers: o.count("layers", 0, maxCount),
		Dim:    o.count("d_model", 0, maxCount), Heads: o.count("heads", 0, maxHeads), FFN: o.count("ffn", 0, maxCount),
		TieEmbed: o.flag("tie_embeddings", false), RopeTheta: o.number("rope_theta", 10000),
		NormEps:  o.number("norm_eps", 1e-5),
		HeadNorm: layer.HeadNormMode(o.text("head_norm", "")), HeadNormEps: o.number("head_norm_eps", 1e-5),
	}
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		o.refuse("arch", err.Error())
		return *o.err
	}
	c.KVHeads = o.count("kv_heads", c.Heads, maxHeads)
	c.HeadDim = o.count("head_dim", max(c.Dim/(c.Heads*a.Values), 1), maxCount)
	if o.count("value_dim", a.Values*c.HeadDim, maxCount) != a.Values*c.HeadDim {
		o.refuse("value_dim", fmt.Sprintf("must be %d × head_dim = %d", a.Values, c.HeadDim))
	}
	switch o.text("rope", "interleaved") {
	case "interleaved":
		c.RopeInterleaved = true
	case "half":
	default:
		o.refuse("rope", `must be "interleaved" or "half"`)
	}
	if c.Context > maxRope/min(c.HeadDim, maxRope) {
		o.refuse("context", fmt.Sprintf("times head_dim = %d is more than %d rotary angles", c.HeadDim, maxRope))
	}
	f.Config = c
	o.tokens(f)
	o.rest(idle)
	if *o.err != nil {
		return *o.err
	}
	if f.Config, err = c.Complete(); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	f.released = true
	f.layout, err = canonical(f.Config, llamaNames)
	return err
}

// releasedNames finds out the names that the modules leave to model builders: whether they begin with "model.", and
// whether the output projection is out_proj, as in V1, or o_proj, as in V2.
func (s *shards) releasedNames() naming {
	n := naming{out: "o_proj"}
	for name := range s.at {
		if strings.HasPrefix(name, "model.") {
			n.root = "model."
		}
		if strings.HasSuffix(name, ".out_proj.weight") {
			n.out = "out_proj"
		}
	}
	return n
}
