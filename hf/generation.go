package hf

import (
	"fmt"
	"maps"
	"slices"

	"antiphase/model"
)

// Generation is the sampling part of generation_config.json. A nil field is absent from the file.
type Generation struct {
	Sample            *bool // false: take the most likely token
	Temperature       *float64
	TopK              *int
	TopP              *float64
	MinP              *float64
	RepetitionPenalty *float64
	MaxNewTokens      *int
}

// JSON renders generation_config.json.
func (g *Generation) JSON(t Tokens) ([]byte, error) {
	m := map[string]any{}
	t.into(m)
	for key, v := range m {
		if v == nil {
			delete(m, key)
		}
	}
	put(m, "do_sample", g.Sample)
	put(m, "temperature", g.Temperature)
	put(m, "top_k", g.TopK)
	put(m, "top_p", g.TopP)
	put(m, "min_p", g.MinP)
	put(m, "repetition_penalty", g.RepetitionPenalty)
	put(m, "max_new_tokens", g.MaxNewTokens)
	return jsonText(m)
}

// ParseGeneration reads what JSON wrote, for a model of vocab ids.
func ParseGeneration(b []byte, vocab int) (*Generation, Tokens, error) {
	f := &Folder{Config: model.Config{Vocab: vocab}, BOS: -1, Pad: -1}
	err := f.generation(b)
	return f.Generation, f.Tokens(), err
}

func put[T any](m map[string]any, key string, v *T) {
	if v != nil {
		m[key] = *v
	}
}

// quiet are keys of generation_config.json that change no token: bookkeeping, caches, what to return, and details of
// beam search.
var quiet = words(`transformers_version max_length max_matching_ngram_size max_time use_cache cache_implementation
	cache_config return_legacy_cache output_attentions output_hidden_states output_scores output_logits
	return_dict_in_generate num_return_sequences length_penalty early_stopping renormalize_logits
	remove_invalid_values disable_compile compile_config decoder_start_token_id is_assistant num_assistant_tokens
	num_assistant_tokens_schedule assistant_confidence_threshold prompt_lookup_num_tokens assistant_early_exit
	assistant_lookbehind target_lookbehind generation_kwargs prefill_chunk_size continuous_batching_config low_memory
	trust_remote_code chat_format max_context_size max_window_size user_name top_h`)

// steering are keys that change tokens in ways this program does not support, with the values that have no effect.
var steering = map[string][]string{
	"num_beams": {"1"}, "num_beam_groups": {"1"}, "penalty_alpha": {"0", "0.0"}, "no_repeat_ngram_size": {"0"},
	"encoder_no_repeat_ngram_size": {"0"},
	"typical_p":                    {"1", "1.0"}, "epsilon_cutoff": {"0", "0.0"}, "eta_cutoff": {"0", "0.0"},
	"diversity_penalty":          {"0", "0.0"},
	"encoder_repetition_penalty": {"1", "1.0"}, "min_length": {"0"}, "min_new_tokens": {"0"},
	"guidance_scale": {"1", "1.0"}, "token_healing": {"false"},
	"stop_strings": {"[]"}, "bad_words_ids": {"[]"}, "suppress_tokens": {"[]"}, "begin_suppress_tokens": {"[]"},
	"sequence_bias": {"{}", "[]"},
}

// generation reads special ids from generation_config.json, which override config.json, and its sampling defaults.
func (f *Folder) generation(b []byte) error {
	f.Generation = &Generation{}
	if b == nil {
		return nil
	}
	o, err := parseObject("generation_config.json", b)
	if err != nil {
		return err
	}
	o.tokens(f)
	f.Generation = o.sampling()
	for _, key := range slices.Sorted(maps.Keys(steering)) { // of several the same one is always reported
		o.neutral(key, steering[key]...)
	}
	o.rest(quiet)
	return *o.err
}

// sampling reads the keys that our samplers support, each within its range.
func (o *object) sampling() *Generation {
	g := &Generation{}
	if _, ok := o.get("do_sample"); ok {
		sample := o.flag("do_sample", false)
		g.Sample = &sample
	}
	g.Temperature = o.within("temperature", 0, 1e6)
	g.TopP = o.within("top_p", 0, 1)
	g.MinP = o.within("min_p", 0, 1)
	g.RepetitionPenalty = o.within("repetition_penalty", 1e-6, 1e6)
	g.TopK = o.whole("top_k")
	g.MaxNewTokens = o.whole("max_new_tokens")
	return g
}

// within is a number in a range, nil if absent.
func (o *object) within(key string, lo, hi float64) *float64 {
	if _, ok := o.get(key); !ok {
		return nil
	}
	x := value(o, key, lo, "a number")
	if !(x >= lo && x <= hi) {
		o.refuse(key, fmt.Sprintf("must be from %g to %g", lo, hi))
	}
	return &x
}

// whole is a non-negative integer, nil if absent.
func (o *object) whole(key string) *int {
	if _, ok := o.get(key); !ok {
		return nil
	}
	n := value(o, key, 0, "a whole number")
	if n < 0 {
		o.refuse(key, "must not be negative")
	}
	return &n
}
