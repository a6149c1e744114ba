package infer

// plan collects the rows of the next step: one for every sequence that lacks a single position, and as many tokens of
// longer ones (prompts) as PrefillChunk allows, oldest first.
func (p *pass) plan() {
	r := &p.rows
	r.IDs, r.Slots, r.Pos, r.Want = r.IDs[:0], r.Slots[:0], r.Pos[:0], r.Want[:0]
	budget, echo := p.chunk, p.echoRows
	for i := 0; i < len(p.sched.batch); i++ {
		s := p.sched.batch[i]
		n := len(s.tokens) - s.cached
		if n > 1 {
			n = min(n, budget)
			if s.sampling.Echo {
				n = min(n, echo)
				echo -= n
			}
			budget -= n
		}
		if !p.sched.grow(s, s.cached+n) {
			return // s was the last
		}
		p.planRows(s, n)
	}
}

// planRows adds the next n positions of s and marks the logits it needs.
func (p *pass) planRows(s *seq, n int) {
	r := &p.rows
	s.want, s.echo = len(r.Want), 0
	for range n {
		if s.sampling.Echo && s.cached >= s.scored && s.cached+1 < s.prompt {
			r.Want = append(r.Want, int32(len(r.IDs)))
			s.echo++
		}
		r.IDs = append(r.IDs, s.tokens[s.cached])
		r.Slots = append(r.Slots, s.slot)
		r.Pos = append(r.Pos, int32(s.cached))
		s.cached++
	}
	if s.last = s.cached == len(s.tokens); s.last {
		r.Want = append(r.Want, int32(len(r.IDs)-1))
	}
}
