package grammar

import (
	"math"
	"slices"
)

// Matcher constrains one text to a grammar. It implements infer.Constraint.
type Matcher struct {
	g     *Grammar
	v     *Vocabulary
	state *State
}

// NewMatcher begins a text. A grammar supports one vocabulary only.
func (g *Grammar) NewMatcher(v *Vocabulary) *Matcher {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cache.states) >= maxStates || len(g.cache.stack) > 1<<16 {
		g.reset()
	}
	return &Matcher{g: g, v: v, state: g.start()}
}

// Mask forbids every token that cannot come next.
func (m *Matcher) Mask(logits []float32) {
	m.g.mu.Lock()
	mask := m.v.allowed(m.g, m.state)
	m.g.mu.Unlock()
	low := float32(math.Inf(-1))
	for i := range logits {
		if i >= m.v.size || mask[i/64]>>(i%64)&1 == 0 {
			logits[i] = low
		}
	}
}

// Accept consumes the chosen token; done reports that nothing can follow.
func (m *Matcher) Accept(id int32) (done bool) {
	if slices.Contains(m.v.ends, id) {
		return true
	}
	i, ok := m.v.find(id)
	if !ok {
		panic("grammar: a token was accepted that the mask forbids")
	}
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	s := m.state
	for _, b := range m.v.bytes[i] {
		if s = m.g.step(s, b); s == nil {
			panic("grammar: a token was accepted that the mask forbids")
		}
	}
	m.state = s
	return s.final
}
