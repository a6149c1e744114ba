package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"antiphase/infer"
)

// sampling reads the fields that chat and completions share.
func (o *form) sampling() infer.Sampling {
	p, l, m := o.model.Defaults, o.limits, o.model
	p.Temperature = o.number("temperature", p.Temperature, 0, 100)
	p.TopP = o.number("top_p", p.TopP, 0, 1)
	p.MinP = o.number("min_p", p.MinP, 0, 1)
	p.TopK = int(o.whole("top_k", int64(p.TopK), -1, math.MaxInt32))
	p.TopK = max(p.TopK, 0) // −1 means all in vLLM
	p.RepetitionPenalty = o.number("repetition_penalty", p.RepetitionPenalty, 1e-6, 1e6)
	p.PresencePenalty = o.number("presence_penalty", 0, -2, 2)
	p.FrequencyPenalty = o.number("frequency_penalty", 0, -2, 2)
	p.IgnoreEOS = o.flag("ignore_eos", false)
	p.MinTokens = int(o.whole("min_tokens", 0, 0, math.MaxInt32))
	p.Seed = uint64(o.whole("seed", int64(rand.Uint64()>>1), math.MinInt64, math.MaxInt64))
	p.Stop = o.stops()
	if ids, given := o.ids("stop_token_ids", "a list of token ids"); given {
		p.StopIDs = ids
	}
	if len(p.StopIDs) > l.Biases {
		o.refuse("stop_token_ids", "has %d entries, at most %d are allowed", len(p.StopIDs), l.Biases)
	}
	for i, id := range p.StopIDs {
		if id < 0 || int(id) >= m.Tokenizer.Vocab() {
			o.refuse("stop_token_ids", "entry %d is %d, outside the vocabulary of %d", i, id, m.Tokenizer.Vocab())
		}
	}
	p.Bias = o.biases()
	o.only("skip_special_tokens", "special tokens are never part of the text here; leave it true", "true")
	o.ignore("user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key")
	return p
}

// stops reads one stop string or a list.
func (o *form) stops() []string {
	l := o.limits
	raw, ok := o.raw("stop")
	if !ok {
		return nil
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		o.refuse("stop", "is %s, must be a string or a list of strings", excerpt(raw))
	}
	if len(list) > l.Stops {
		o.refuse("stop", "has %d entries, at most %d are allowed", len(list), l.Stops)
	}
	for i, t := range list {
		if t == "" || len(t) > l.StopBytes {
			o.refuse("stop", "entry %d has %d bytes, must have between 1 and %d", i, len(t), l.StopBytes)
		}
	}
	return list
}

// biases reads logit_bias, an object from token ids to numbers.
func (o *form) biases() []infer.TokenBias {
	l, m := o.limits, o.model
	var table map[string]*float64
	if !o.decode("logit_bias", &table, "an object from token ids to numbers") {
		return nil
	}
	if len(table) > l.Biases {
		o.refuse("logit_bias", "has %d entries, at most %d are allowed", len(table), l.Biases)
		return nil
	}
	var out []infer.TokenBias
	for _, k := range slices.Sorted(maps.Keys(table)) {
		v := table[k]
		id, err := strconv.ParseInt(k, 10, 32)
		// +5 and 05 would be 5 again.
		if err != nil || id < 0 || int(id) >= m.Tokenizer.Vocab() || strconv.FormatInt(id, 10) != k {
			o.refuse("logit_bias", "%q is not a token id below %d", excerpt([]byte(k)), m.Tokenizer.Vocab())
			return nil
		}
		if v == nil {
			o.refuse("logit_bias", "the bias of token %d is null, must be a number", id)
			return nil
		}
		if !(*v >= -100 && *v <= 100) {
			o.refuse("logit_bias", "the bias of token %d is %g, must be between -100 and 100", id, *v)
			return nil
		}
		out = append(out, infer.TokenBias{ID: int32(id), Bias: *v})
	}
	return out
}

// salt reads what separates prefixes of one key. It is stored in the prefix table, so it must be short.
func (o *object) salt() string {
	s := o.text("cache_salt")
	if len(s) > 256 {
		o.refuse("cache_salt", "has %d bytes, at most 256 are allowed", len(s))
	}
	return s
}

// maxTokens reads the length of the answer under its old and its new name; given reports whether there was one.
func (o *object) maxTokens(names ...string) (n int, given bool) {
	for _, name := range names {
		if _, ok := o.raw(name); ok {
			n, given = int(o.whole(name, 0, 0, math.MaxInt32)), true
		}
	}
	return n, given
}

// streaming reads stream and stream_options.
func (o *object) streaming() (stream, usage bool) {
	stream = o.flag("stream", false)
	if raw, ok := o.raw("stream_options"); ok {
		sub, err := parseObject(bytes.TrimSpace(raw))
		if err != nil {
			o.refuse("stream_options", "is %s, must be an object", excerpt(raw))
			return stream, false
		}
		usage = sub.flag("include_usage", false)
		sub.ignore("include_obfuscation")
		if err := sub.finish(); err != nil {
			o.refuse("stream_options", "%s", err)
		}
		if !stream {
			o.refuse("stream_options", "needs stream")
		}
	}
	return stream, usage
}
