package hf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"

	"antiphase/layer"
	"antiphase/model"
)

// classNames are the architectures that config.json may name.
var classNames = map[Class]string{Llama: "LlamaForCausalLM", DiffLlama: "DiffLlamaForCausalLM",
	Antiphase: "AntiphaseForCausalLM"}

// configJSON renders config.json.
func (e *Export) configJSON(class Class) (func(io.Writer) error, error) {
	m, err := describe(e.Config, class)
	if err != nil {
		return nil, err
	}
	m["dtype"] = cmp.Or(e.DType, "float32")
	e.Tokens.into(m)
	return indented(m)
}

// into sets the existing ids, and null for others, because transformers has defaults for absent ones.
func (t Tokens) into(m map[string]any) {
	m["bos_token_id"], m["eos_token_id"], m["pad_token_id"] = nil, nil, nil
	if t.BOS >= 0 {
		m["bos_token_id"] = t.BOS
	}
	if t.Pad >= 0 {
		m["pad_token_id"] = t.Pad
	}
	switch len(t.EOS) {
	case 0:
	case 1:
		m["eos_token_id"] = t.EOS[0]
	default:
		m["eos_token_id"] = t.EOS
	}
}

func indented(v any) (func(io.Writer) error, error) {
	b, err := jsonText(v)
	return contents(b), err
}

// jsonText is indented JSON that does not escape <|tokens|>.
func jsonText(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// decimal is a number that JSON shows as a float: 10000.0. transformers checks the type of some.
type decimal float64

// MarshalJSON writes a point or an exponent.
func (d decimal) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(d))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// describe is a model's configuration in transformers' terms.
func describe(c model.Config, class Class) (map[string]any, error) {
	l, err := exportLayout(c, class)
	if err != nil {
		return nil, err
	}
	m := map[string]any{
		"architectures": []string{classNames[class]}, "model_type": string(class),
		"vocab_size": c.Vocab, "hidden_size": c.Dim, "intermediate_size": c.FFN, "num_hidden_layers": c.Layers,
		"num_attention_heads": l.heads, "num_key_value_heads": l.kvHeads, "head_dim": c.HeadDim, "hidden_act": "silu",
		"max_position_embeddings": c.Context, "rms_norm_eps": decimal(c.NormEps), "attention_bias": c.Bias,
		"tie_word_embeddings": c.TieEmbed, "initializer_range": 0.02, "use_cache": true,
	}
	if class == Antiphase {
		return m, describeOwn(m, c)
	}
	m["attention_dropout"] = decimal(0)
	m["rope_parameters"] = ropeParameters(c)
	m["rope_theta"] = decimal(c.RopeTheta) // where older releases look for it
	if class == DiffLlama {
		m["lambda_std_dev"] = decimal(c.LambdaStd)
	} else {
		m["mlp_bias"] = false
	}
	if c.RopeInterleaved {
		m["antiphase"] = map[string]any{"rope_interleaved": true}
	}
	return m, nil
}

// ropeParameters is the rotary embedding in transformers' format.
func ropeParameters(c model.Config) map[string]any {
	m := map[string]any{"rope_theta": decimal(c.RopeTheta), "rope_type": "default"}
	s := c.RopeScaling
	if s == nil {
		return m
	}
	m["rope_type"] = s.Type
	for key, v := range map[string]float64{
		"factor": s.Factor, "low_freq_factor": s.LowFreqFactor, "high_freq_factor": s.HighFreqFactor,
		"beta_fast": s.BetaFast, "beta_slow": s.BetaSlow,
		"attention_factor": s.AttentionFactor, "mscale": s.MScale, "mscale_all_dim": s.MScaleAllDim,
	} {
		if v != 0 {
			m[key] = decimal(v)
		}
	}
	if s.OriginalContext != 0 {
		m["original_max_position_embeddings"] = s.OriginalContext
	}
	if s.Truncate != nil {
		m["truncate"] = *s.Truncate
	}
	return m
}

// describeOwn adds what the folder's own Python class reads: our configuration, and the numbers derived from it.
func describeOwn(m map[string]any, c model.Config) error {
	frequencies, factor, err := c.Frequencies()
	if err != nil {
		return err
	}
	a, err := layer.LookupArch(c.Arch)
	if err != nil {
		return err
	}
	inits := make([]float64, c.Layers)
	for i := range inits {
		inits[i] = c.LambdaInitAt(i)
	}
	m["num_attention_heads"], m["num_key_value_heads"] = c.Heads, c.KVHeads
	m["auto_map"] = map[string]any{
		"AutoConfig":           "configuration_antiphase.AntiphaseConfig",
		"AutoModelForCausalLM": "modeling_antiphase.AntiphaseForCausalLM",
	}
	own := map[string]any{
		"model": c, "queries": a.Maps, "keys": a.Keys, "values": a.Values, "lambda": lambdaKind(c),
		"lambda_init": inits, "rope_frequencies": frequencies,
	}
	if factor != 1 {
		own["rope_factor"] = factor
	}
	m["antiphase"] = own
	return nil
}
