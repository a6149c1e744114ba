package hf

import (
	"fmt"
	"slices"
	"strings"

	"antiphase/layer"
	"antiphase/model"
)

// Limits on configurations, checked before any tensor confirms them.
const (
	maxConfig = 1 << 20 // bytes of a configuration file
	maxCount  = 1<<31 - 1
	maxHeads  = 1 << 16
	maxRope   = 1 << 28 // context × head_dim: entries of the table of rotary angles
)

// families are the model types, each with the class whose weights and head it describes.
var families = map[string]struct {
	class   string
	diff    bool
	normEps float64
}{
	"llama":     {class: "LlamaForCausalLM", normEps: 1e-6},
	"diffllama": {class: "DiffLlamaForCausalLM", diff: true, normEps: 1e-5},
}

// idle are keys that do not change logits: bookkeeping, training, and defaults of text generation.
var idle = words(`architectures attention_dropout attn_implementation auto_map bad_words_ids begin_suppress_tokens
	chunk_size_feed_forward cross_attention_hidden_size decoder_start_token_id diversity_penalty do_sample dtype
	early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty finetuning_task forced_bos_token_id
	forced_eos_token_id id2label initializer_range is_decoder is_llama_config label2id length_penalty max_length
	max_sequence_length min_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences
	output_attentions output_hidden_states output_scores prefix pretraining_tp problem_type remove_invalid_values
	repetition_penalty return_dict return_dict_in_generate sep_token_id suppress_tokens task_specific_params
	temperature tf_legacy_loss tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript
	transformers.js_config transformers_version typical_p unsloth_fixed unsloth_version use_bfloat16 use_cache`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// parse reads config.json and generation_config.json (nil if there is none).
func parse(config, generation []byte) (*Folder, error) {
	o, err := parseObject("config.json", config)
	if err != nil {
		return nil, err
	}
	f := &Folder{ModelType: o.text("model_type", "")}
	_, named := o.m["arch"]
	var special func(*object) error
	switch {
	case f.ModelType == string(Antiphase):
		special = f.parseOwn
	case f.ModelType == "" && named:
		special = f.parseReleased
	}
	if special != nil {
		if err := special(o); err != nil {
			return nil, err
		}
		return f, f.generation(generation)
	}
	family, ok := families[f.ModelType]
	if !ok {
		o.refuse("model_type", `must be "llama", "diffllama" or "antiphase"`)
		return nil, *o.err
	}
	if classes := o.texts("architectures"); len(classes) > 0 && !slices.Contains(classes, family.class) {
		o.refuse("architectures", "must be "+family.class)
	}
	o.unsupported()
	f.layout = o.geometry(family.diff)
	f.Config = o.model(f.layout, family.normEps)
	f.layout.extras = extras(f.Config)
	o.origin(f)
	o.tokens(f)
	o.rest(idle)
	if *o.err != nil {
		return nil, *o.err
	}
	if err := f.Config.Check(); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	return f, f.generation(generation)
}

// unsupported rejects features that transformers would compute and this program does not.
func (o *object) unsupported() {
	if act := o.text("hidden_act", "silu"); act != "silu" && act != "swish" {
		o.refuse("hidden_act", `only "silu" is supported`)
	}
	for _, key := range []string{"mlp_bias", "rope_interleaved", "use_sliding_window", "is_encoder_decoder",
		"add_cross_attention"} {
		o.neutral(key, "false")
	}
	o.neutral("partial_rotary_factor", "1", "1.0")
	o.neutral("pruned_heads", "{}")
	o.neutral("quantization_config")
	o.neutral("sliding_window")
}

// geometry reads the sizes that determine the positions of a parameter's rows.
func (o *object) geometry(diff bool) layout {
	l := layout{halves: diff, names: llamaNames}
	l.vocab = o.count("vocab_size", 0, maxCount)
	l.layers = o.count("num_hidden_layers", 0, maxCount)
	l.dim = o.count("hidden_size", 0, maxCount)
	l.inner = o.count("intermediate_size", 0, maxCount)
	l.heads = o.count("num_attention_heads", 0, maxHeads)
	l.kvHeads = o.count("num_key_value_heads", l.heads, maxHeads)
	if l.heads%l.kvHeads != 0 {
		o.refuse("num_key_value_heads", fmt.Sprintf("must divide num_attention_heads = %d", l.heads))
	}
	if diff && l.heads%2 != 0 {
		o.refuse("num_attention_heads", "must be even: two query heads make one differential head")
	}
	l.values, l.out = l.kvHeads, l.heads
	l.headDim = o.count("head_dim", max(l.dim/l.heads, 1), maxCount)
	l.bias = o.flag("attention_bias", false)
	l.tied = o.flag("tie_word_embeddings", false)
	return l
}

// model is the configuration in our terms. Differential heads count pairs; HF's head norm has no gain.
func (o *object) model(l layout, normEps float64) model.Config {
	c := model.Config{
		Arch: "transformer", Vocab: l.vocab, Layers: l.layers, Dim: l.dim, Heads: l.heads, KVHeads: l.kvHeads,
		HeadDim: l.headDim, FFN: l.inner, TieEmbed: l.tied, Bias: l.bias, HeadNorm: layer.HeadNormOff,
		LambdaInit: model.LambdaSchedule, LambdaStd: 0.1,
	}
	c.Context = o.count("max_position_embeddings", 2048, maxCount)
	if c.Context > maxRope/min(l.headDim, maxRope) {
		o.refuse("max_position_embeddings",
			fmt.Sprintf("times head_dim = %d is more than %d rotary angles", l.headDim, maxRope))
	}
	c.NormEps = o.number("rms_norm_eps", normEps)
	c.HeadNormEps = c.NormEps
	if l.halves {
		c.Arch, c.HeadNorm = "diff", layer.HeadNormPlain
		c.Heads, c.KVHeads = l.heads/2, l.groups()
		c.LambdaStd = o.number("lambda_std_dev", c.LambdaStd)
	}
	o.rope(&c)
	return c
}

// origin reads a note of our own export in a folder of transformers' classes: its rows were permuted from an
// interleaved rotation. Reading them back the same way restores them bit for bit.
func (o *object) origin(f *Folder) {
	if from := o.object("antiphase"); from != nil {
		f.Config.RopeInterleaved = from.flag("rope_interleaved", false)
		f.layout.relay = f.Config.RopeInterleaved
		from.rest(nil)
	}
}

// tokens reads the special ids of either configuration file; f keeps those that o does not name.
func (o *object) tokens(f *Folder) {
	one := func(key string, old int) int {
		switch list := o.ids(key, f.Config.Vocab); len(list) {
		case 0:
			return old
		case 1:
			return list[0]
		default:
			o.refuse(key, "must be one token id")
			return old
		}
	}
	if o.path == "config.json" {
		f.BOS, f.Pad = -1, -1
	}
	f.BOS, f.Pad = one("bos_token_id", f.BOS), one("pad_token_id", f.Pad)
	if eos := o.ids("eos_token_id", f.Config.Vocab); len(eos) > 0 {
		f.EOS = eos
	}
}
