package hf

import "antiphase/model"

// rope reads the rotary embedding in the current form, one object rope_parameters that includes rope_theta, or in the
// older one, rope_theta next to an object rope_scaling.
func (o *object) rope(c *model.Config) {
	c.RopeTheta = o.number("rope_theta", 10000)
	trained := o.count("original_max_position_embeddings", c.Context, maxCount)
	s, scaling := o.object("rope_parameters"), o.object("rope_scaling")
	if s != nil && scaling != nil {
		o.refuse("rope_scaling", "is given beside rope_parameters; only one of them may be")
	}
	if s == nil {
		s = scaling
	}
	if s == nil {
		return
	}
	c.RopeTheta = s.number("rope_theta", c.RopeTheta)
	s.neutral("partial_rotary_factor", "1", "1.0")
	r := &model.RopeScaling{Type: s.ropeType(), Factor: s.number("factor", 0),
		LowFreqFactor: s.number("low_freq_factor", 0), HighFreqFactor: s.number("high_freq_factor", 0),
		BetaFast: s.number("beta_fast", 0), BetaSlow: s.number("beta_slow", 0),
		AttentionFactor: s.number("attention_factor", 0), MScale: s.number("mscale", 0),
		MScaleAllDim:    s.number("mscale_all_dim", 0),
		OriginalContext: s.count("original_max_position_embeddings", trained, maxCount)}
	if _, top := o.get("original_max_position_embeddings"); top {
		r.OriginalContext = trained // transformers prefers the outer one
	}
	if _, ok := s.get("truncate"); ok {
		truncate := s.flag("truncate", true)
		r.Truncate = &truncate
	}
	s.checkRope(r, c)
	s.rest(nil)
	if r.Type != "default" {
		c.RopeScaling = r
	}
}

// ropeType is rope_type, called type in older files.
func (o *object) ropeType() string {
	old := o.text("type", "default")
	kind := o.text("rope_type", old)
	if _, both := o.get("type"); both && kind != old {
		o.refuse("rope_type", "differs from type = "+old)
	}
	return kind
}

// checkRope rejects values that the formulas of package model would take for absent or cannot handle.
func (o *object) checkRope(r *model.RopeScaling, c *model.Config) {
	switch r.Type {
	case "default", "linear", "dynamic", "llama3", "yarn":
	default:
		key := "rope_type"
		if _, ok := o.get(key); !ok {
			key = "type"
		}
		o.refuse(key, "must be default, linear, dynamic, llama3 or yarn")
	}
	if _, ok := o.get("attention_factor"); ok && r.AttentionFactor == 0 {
		o.refuse("attention_factor", "must be positive")
	}
	if r.Type == "yarn" && c.RopeTheta <= 1 {
		o.refuse("rope_theta", "must be above 1 for yarn")
	}
}
