package cuda

// Kernels of attn_hopper_*.cu under trial: each is a geometry that differs from the table's in one or more switches.

// hopperTrials are the kernels under trial by shape and geometry.
var hopperTrials = func() map[attnShape]hopperVariants {
	all := map[attnShape]hopperVariants{}
	for s, k := range hopperShapes {
		v := hopperVariants{map[hopperForward]kernel{k.tile: k.forward}, map[hopperBackward]kernel{k.back: k.backward}}
		for i := range 32 {
			has := func(bit int) bool { return i>>bit&1 > 0 }
			t := k.tile.trial(s, trials{loopForward: has(0), turns: has(1), narrow: has(2), poly: has(3)})
			if _, ok := v.forward[t]; !ok {
				v.forward[t] = hopperOf("attn_hopper_forward", "attn_hopper_forward", t.options(s, false)...)
			}
			b := k.back.trial(s, trials{loopBackward: has(0), ahead: has(1), weave: has(2), fill: has(3), deep: has(4)})
			if _, ok := v.backward[b]; !ok {
				v.backward[b] = hopperOf("attn_hopper_backward", "attn_hopper_backward", b.options(s)...)
			}
		}
		all[s] = v
	}
	return all
}()

// hopperVariants are a shape's kernels by geometry.
type hopperVariants struct {
	forward  map[hopperForward]kernel
	backward map[hopperBackward]kernel
}

// trial is k with what is on trial.
func (k hopperKernels) trial(s attnShape, try trials) hopperKernels {
	k.last = try.last
	k.tile, k.back = k.tile.trial(s, try), k.back.trial(s, try)
	k.forward, k.backward = hopperTrials[s].forward[k.tile], hopperTrials[s].backward[k.back]
	return k
}

// trial: blocks stay where a warpgroup has all maps; the others pass O2 through the ring of K. turns and narrow are for
// V1 at d = 128, poly for d = 64, where exponentials take as long as products.
func (t hopperForward) trial(s attnShape, try trials) hopperForward {
	t.loop = t.loop || try.loopForward && t.per == s.maps
	t.poly = t.poly || try.poly && s.d == 64
	if s == (attnShape{2, 2, 128, 256}) {
		t.turns = t.turns || try.turns
		if try.narrow {
			t.keys = 64
		}
	}
	return t
}

// trial: ahead and weave are for warpgroups with both maps; registers allow ahead at d = 64 only.
func (t hopperBackward) trial(s attnShape, try trials) hopperBackward {
	both := s.maps == 2 && !t.split && s.d != 96
	t.loop = t.loop || try.loopBackward
	t.weave = t.weave || try.weave && both
	t.ahead = t.ahead || try.ahead && both && !t.weave && s.keys*s.d+s.dv < 256
	if deep := t; try.deep && s.maps == 2 && t.copied == s.d/8 {
		if deep.deep = true; deep.shared(s)+ticketBytes <= mostShared {
			t = deep
		}
	}
	t.fill = t.fill || try.fill && s.maps == 2 && t.rounds*t.copied < s.d/8 && !t.weave
	return t
}
