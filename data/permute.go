package data

import "math/bits"

const permuteRounds = 8

// permutation is a seeded bijection of [0, n) that needs no table: a Feistel network over the smallest power of two
// not below n, walked along its cycle until the value falls inside [0, n). The domain is below 2n, so a walk takes
// fewer than two steps on average, whatever n is.
type permutation struct {
	n            uint64
	bitsR        uint
	maskL, maskR uint64
	keys         [permuteRounds]uint64
}

// newPermutation returns the permutation of [0, n) for one (seed, epoch); n must be positive.
func newPermutation(n, seed, epoch uint64) permutation {
	width := uint(bits.Len64(n - 1))
	p := permutation{n: n, bitsR: (width + 1) / 2}
	p.maskR = 1<<p.bitsR - 1
	p.maskL = 1<<(width-p.bitsR) - 1
	state := mix64(seed) ^ mix64(^epoch)
	for i := range p.keys {
		state += 0x9e3779b97f4a7c15
		p.keys[i] = mix64(state)
	}
	return p
}

// at returns the image of i; i must lie in [0, n).
func (p *permutation) at(i uint64) uint64 {
	for {
		if i = p.once(i); i < p.n {
			return i
		}
	}
}

// once runs the network. Each round xors one half with a function of the other, so each is its own inverse and
// halves of unequal width need no swap.
func (p *permutation) once(x uint64) uint64 {
	l, r := x>>p.bitsR, x&p.maskR
	for i := 0; i < permuteRounds; i += 2 {
		r ^= mix64(l^p.keys[i]) & p.maskR
		l ^= mix64(r^p.keys[i+1]) & p.maskL
	}
	return l<<p.bitsR | r
}

// mix64 is a bijective 64-bit finaliser with full avalanche (the constants of SplitMix64).
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
