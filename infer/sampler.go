package infer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// TokenLogprob is a token and its log-probability under the model, before any penalty, temperature or filter.
type TokenLogprob struct {
	ID      int32
	Logprob float64
}

// sampler is the working memory for choosing tokens, shared by all sequences of an engine.
type sampler struct {
	cand []candidate // room for the vocabulary
	raw  []float32   // the model's logits, if log-probabilities are requested
}

func newSampler(vocab int) sampler {
	return sampler{cand: make([]candidate, vocab), raw: make([]float32, vocab)}
}

// history is the state of a sequence's sampler between tokens.
type history struct {
	rng  rand.PCG
	seen []uint64 // one bit per id; nil without a repetition penalty
	ids  []int32  // the ids whose bit is set, each once

	counts map[int32]int // generated tokens; nil without a presence or frequency penalty
	made   int           // tokens generated
	ends   []int32       // ids that end the text
}

// start begins a random stream and clears the history.
func (h *history) start(s *Sampling, vocab int, tokens []int32) {
	h.rng.Seed(s.Seed, 0x616e746970686173)
	h.seen, h.ids, h.counts, h.made = nil, nil, nil, 0
	if s.PresencePenalty != 0 || s.FrequencyPenalty != 0 {
		h.counts = map[int32]int{}
	}
	if s.RepetitionPenalty == 0 || s.RepetitionPenalty == 1 {
		return
	}
	h.seen = make([]uint64, (vocab+63)/64)
	for _, id := range tokens {
		h.see(id)
	}
}

// reserve makes room for the ids of n tokens; there are at most as many as bits.
func (h *history) reserve(n int) {
	if h.seen != nil {
		h.ids = slices.Grow(h.ids, max(0, min(64*len(h.seen), n)-len(h.ids)))
	}
}

// see records that a token is part of the sequence.
func (h *history) see(id int32) {
	if h.seen == nil {
		return
	}
	if w, bit := &h.seen[id/64], uint64(1)<<(id%64); *w&bit == 0 {
		*w |= bit
		h.ids = append(h.ids, id)
	}
}

// took records a generated token.
func (h *history) took(id int32) {
	h.made++
	h.see(id)
	if h.counts != nil {
		h.counts[id]++
	}
}

// next chooses a token from a row of logits, which it changes in place, and appends the most likely ones to top if
// log-probabilities are requested. The step wraps its error with the place.
func (m *sampler) next(logits []float32, s *Sampling, h *history, top []TokenLogprob) (id int32, logprob float64,
	_ []TokenLogprob, err error) {
	first, err := argmax(logits)
	if err != nil {
		return -1, 0, top, err
	}
	if s.Logprobs == 0 {
		id, err = m.pick(logits, s, h, first)
		return id, 0, top, err
	}
	top, lse := m.logprobs(top, logits, s.Logprobs, logits[first])
	raw := m.raw[:copy(m.raw, logits)]
	if id, err = m.pick(logits, s, h, first); err != nil {
		return -1, 0, top, err
	}
	return id, float64(raw[id]) - lse, top, nil
}

// pick chooses from a row whose first maximum is top.
func (m *sampler) pick(logits []float32, s *Sampling, h *history, top int32) (_ int32, err error) {
	if s.adjusts() {
		adjust(logits, s, h)
		if top, err = argmax(logits); err != nil {
			return -1, fmt.Errorf("after penalties, biases and constraints: %w", err)
		}
	}
	if s.Temperature == 0 {
		return top, nil
	}
	limit := float64(logits[top])
	// 53 random bits as a number in [0,1)
	u := float64(h.rng.Uint64()>>11) / (1 << 53)
	if s.TopK == 0 && (s.TopP == 0 || s.TopP == 1) {
		return m.all(logits, s, limit, u), nil
	}
	return m.some(logits, s, limit, u), nil
}

// penalize is Hugging Face's repetition penalty: l/p for l > 0, l·p for l < 0. Results stay finite, so that an extreme
// penalty is not an error.
func penalize(logits []float32, ids []int32, penalty float64) {
	for _, id := range ids {
		l := float64(logits[id])
		switch {
		case math.IsInf(l, 0) || math.IsNaN(l):
			continue
		case l > 0:
			l /= penalty
		case l < 0:
			l *= penalty
		}
		logits[id] = float32(max(-math.MaxFloat32, min(math.MaxFloat32, l)))
	}
}

// NotFiniteError is a row of logits that is not a distribution: the model's weights are damaged, or it has diverged.
type NotFiniteError struct{ what string }

// Error names the logit.
func (e *NotFiniteError) Error() string { return e.what }

// argmax is the lowest id of the highest logit. NaN and +Inf are errors, and so is a row of −Inf only: none is a
// distribution.
func argmax(logits []float32) (int32, error) {
	top, high := -1, float32(math.Inf(-1))
	for i, l := range logits {
		if l > high {
			top, high = i, l
		}
		if l != l || l > math.MaxFloat32 {
			return -1, &NotFiniteError{fmt.Sprintf("the logit of token %d is %g", i, l)}
		}
	}
	if top < 0 {
		return -1, &NotFiniteError{fmt.Sprintf("all %d logits are -Inf", len(logits))}
	}
	return int32(top), nil
}

// weigh is the token's probability relative to the most likely one's: exp((l − limit)/temperature).
func weigh(l float32, limit, temperature float64) float64 {
	d := float64(l) - limit
	if d == 0 {
		return 1 // 0/temperature for any temperature
	}
	return math.Exp(d / temperature)
}

// all samples from the whole row; no order is needed. min-p compares with the most likely token's weight, 1.
func (m *sampler) all(logits []float32, s *Sampling, limit, u float64) int32 {
	list := m.cand[:0]
	sum := 0.0
	for i, l := range logits {
		if w := weigh(l, limit, s.Temperature); w > 0 && w >= s.MinP {
			list = append(list, candidate{id: int32(i), weight: w})
			sum += w
		}
	}
	return draw(list, u*sum)
}

// some samples from the most likely tokens: top-k, of these top-p, of these min-p.
func (m *sampler) some(logits []float32, s *Sampling, limit, u float64) int32 {
	k := len(logits)
	if s.TopK > 0 {
		k = min(k, s.TopK)
	}
	var list []candidate
	if s.TopP == 0 || s.TopP == 1 {
		list = weighAll(best(m.cand, logits, k), s, limit)
	} else {
		list = m.nucleus(logits, s, limit, k)
	}
	n, sum := 0, 0.0
	for n < len(list) && list[n].weight >= s.MinP {
		sum += list[n].weight
		n++
	}
	return draw(list[:n], u*sum)
}

// nucleus is the shortest run of the k most likely tokens whose weights reach TopP of the k tokens' sum.
func (m *sampler) nucleus(logits []float32, s *Sampling, limit float64, k int) []candidate {
	var list []candidate
	var sum float64
	if k < len(logits) {
		list = weighAll(best(m.cand, logits, k), s, limit)
		sum = total(list)
	} else {
		list, sum = m.heavy(logits, s, limit)
	}
	reached := 0.0
	for i := range list {
		if reached += list[i].weight; reached >= s.TopP*sum {
			return list[:i+1]
		}
	}
	return list // rounding kept the sum below its share
}

// heavy lists, best first, all tokens that can be in the nucleus, with the sum of all weights. Tokens below
// (1−TopP)·sum/V together weigh less than what top-p drops, so they need no sorting: few tokens of a trained model's
// row remain.
func (m *sampler) heavy(logits []float32, s *Sampling, limit float64) ([]candidate, float64) {
	list := m.cand[:len(logits)]
	for i, l := range logits {
		list[i] = candidate{id: int32(i), logit: l}
	}
	weighAll(list, s, limit)
	sum := total(list)
	least := (1 - s.TopP) * sum / float64(len(list))
	n := 0
	for _, c := range list {
		if c.weight >= least {
			list[n] = c
			n++
		}
	}
	slices.SortFunc(list[:n], compare)
	return list[:n], sum
}

func weighAll(list []candidate, s *Sampling, limit float64) []candidate {
	for i := range list {
		list[i].weight = weigh(list[i].logit, limit, s.Temperature)
	}
	return list
}

func total(list []candidate) float64 {
	sum := 0.0
	for i := range list {
		sum += list[i].weight
	}
	return sum
}

// draw is the first token whose cumulative weight exceeds x. If rounding leaves x beyond the last, it is the last.
func draw(list []candidate, x float64) int32 {
	id := list[0].id
	for i := range list {
		if list[i].weight > 0 {
			id = list[i].id
		}
		if x -= list[i].weight; x < 0 {
			break
		}
	}
	return id
}

// logprobs appends the n most likely tokens to dst and returns the log-sum-exp, from which any token's log-probability
// follows. limit is the highest logit.
func (m *sampler) logprobs(dst []TokenLogprob, logits []float32, n int, limit float32) ([]TokenLogprob, float64) {
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - float64(limit))
	}
	lse := float64(limit) + math.Log(sum)
	for _, c := range best(m.cand, logits, n) {
		dst = append(dst, TokenLogprob{ID: c.id, Logprob: float64(c.logit) - lse})
	}
	return dst, lse
}

// score is the log-probability of a given token; the n most likely ones are appended to top.
func (m *sampler) score(logits []float32, id int32, n int, top []TokenLogprob) (float64, []TokenLogprob, error) {
	first, err := argmax(logits)
	if err != nil {
		return 0, top, err
	}
	top, lse := m.logprobs(top, logits, n, logits[first])
	return float64(logits[id]) - lse, top, nil
}
