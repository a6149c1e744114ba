package harness

import "math/bits"

// python is the Mersenne Twister of Python's random.Random. The harness draws its examples with it, and equal prompts
// need equal draws.
type python struct {
	state [624]uint32
	at    int
}

// newPython is random.Random(seed): the twister's initialisation by an array, of one or two words here.
func newPython(seed uint64) *python {
	p := &python{}
	p.state[0] = 19650218
	for i := 1; i < len(p.state); i++ {
		p.state[i] = 1812433253*(p.state[i-1]^p.state[i-1]>>30) + uint32(i)
	}
	key := []uint32{uint32(seed)}
	if seed>>32 != 0 {
		key = append(key, uint32(seed>>32))
	}
	const n = len(p.state)
	i, j := 1, 0
	next := func() {
		if i++; i == n {
			p.state[0], i = p.state[n-1], 1
		}
	}
	for range max(n, len(key)) {
		p.state[i] = (p.state[i] ^ (p.state[i-1]^p.state[i-1]>>30)*1664525) + key[j] + uint32(j)
		next()
		j = (j + 1) % len(key)
	}
	for range n - 1 {
		p.state[i] = (p.state[i] ^ (p.state[i-1]^p.state[i-1]>>30)*1566083941) - uint32(i)
		next()
	}
	p.state[0] = 1 << 31
	p.at = n
	return p
}

// word is the next 32 bits.
func (p *python) word() uint32 {
	const n, m = 624, 397
	if p.at == n {
		for k := range n {
			y := p.state[k]&(1<<31) | p.state[(k+1)%n]&(1<<31-1)
			p.state[k] = p.state[(k+m)%n] ^ y>>1 ^ -(y&1)&0x9908b0df
		}
		p.at = 0
	}
	y := p.state[p.at]
	p.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below is a number in [0, n): words with as many bits as n, until one fits.
func (p *python) below(n int) int {
	k := bits.Len(uint(n))
	for {
		if r := int(p.word() >> (32 - k)); r < n {
			return r
		}
	}
}

// sample is random.sample: k different indices of n, in the order drawn. For small sets it draws from a pool, for large
// ones it redraws duplicates.
func (p *python) sample(n, k int) []int {
	size := 21
	if k > 5 {
		power := 1
		for power < 3*k { // 4 ** ceil(log(3k, 4))
			power *= 4
		}
		size += power
	}
	out := make([]int, k)
	if n <= size {
		pool := make([]int, n)
		for i := range pool {
			pool[i] = i
		}
		for i := range out {
			j := p.below(n - i)
			out[i] = pool[j]
			pool[j] = pool[n-i-1]
		}
		return out
	}
	taken := map[int]bool{}
	for i := range out {
		j := p.below(n)
		for taken[j] {
			j = p.below(n)
		}
		taken[j], out[i] = true, j
	}
	return out
}
