package cuda

// Kernels of attn_hopper_*.cu under trial: each is a geometry that differs from the table's in one or more switches.

// hopperTrials are the backward kernels under trial by shape and geometry, loopForward the forward ones by shape.
var hopperTrials, hopperForwardLoops = func() (map[attnShape]map[hopperBackward]kernel, map[attnShape]kernel) {
	back, forward := map[attnShape]map[hopperBackward]kernel{}, map[attnShape]kernel{}
	for s, k := range hopperShapes {
		back[s] = map[hopperBackward]kernel{k.back: k.backward}
		for i := range 16 {
			b := k.back.trial(s, trials{loopBackward: i&1 > 0, ahead: i&2 > 0, weave: i&4 > 0, fill: i&8 > 0})
			if _, ok := back[s][b]; !ok {
				back[s][b] = hopperOf("attn_hopper_backward", "attn_hopper_backward", b.options(s)...)
			}
		}
		if t := k.tile.trial(s, trials{loopForward: true}); t != k.tile {
			forward[s] = hopperOf("attn_hopper_forward", "attn_hopper_forward", t.options(s, false)...)
		}
	}
	return back, forward
}()

// trial is k with what is on trial.
func (k hopperKernels) trial(s attnShape, try trials) hopperKernels {
	k.last = try.last
	if t := k.tile.trial(s, try); t != k.tile {
		k.tile, k.forward = t, hopperForwardLoops[s]
	}
	k.back = k.back.trial(s, try)
	k.backward = hopperTrials[s][k.back]
	return k
}

// trial: blocks stay where a warpgroup has all maps; the others pass O2 through the ring of K.
func (t hopperForward) trial(s attnShape, try trials) hopperForward {
	t.loop = t.loop || try.loopForward && t.per == s.maps
	return t
}

// trial: ahead and weave are for warpgroups with both maps; registers allow ahead at d = 64 only.
func (t hopperBackward) trial(s attnShape, try trials) hopperBackward {
	both := s.maps == 2 && !t.split && s.d != 96
	t.loop = t.loop || try.loopBackward
	t.weave = t.weave || try.weave && both
	t.ahead = t.ahead || try.ahead && both && !t.weave && s.keys*s.d+s.dv < 256
	t.fill = t.fill || try.fill && s.maps == 2 && t.rounds*t.copied < s.d/8 && !t.weave
	return t
}
