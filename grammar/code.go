package grammar

import "math"

// op is what an instruction does.
type op uint8

const (
	opSet   op = iota // read a byte of sets[x]
	opSplit           // continue at x or at y
	opJump            // continue at x
	opCall            // run the rule at x, then continue with the next instruction
	opRet             // end of a rule
	opMatch           // end of the text
	opFail            // dead end
)

type inst struct {
	op   op
	x, y int32
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(lo, hi byte) {
	for b := int(lo); b <= int(hi); b++ {
		s[b/64] |= 1 << (b % 64)
	}
}

func (s *set) has(b byte) bool { return s[b/64]>>(b%64)&1 == 1 }

// span is the set of bytes from lo to hi, plus those of more.
func span(lo, hi byte, more ...byte) (s set) {
	s.add(lo, hi)
	for _, b := range more {
		s.add(b, b)
	}
	return s
}

// code builds a program. Each method appends instructions that fall through to the next ones appended.
type code struct {
	list   []inst
	sets   []set
	known  map[set]int32
	rules  []int32 // entry of each rule, −1 while only declared
	limits *Limits
	err    error
}

func (c *code) put(i inst) int32 {
	if len(c.list) >= c.limits.Code {
		c.fail(&SchemaError{Problem: "is too large"})
		return 0
	}
	c.list = append(c.list, i)
	return int32(len(c.list) - 1)
}

func (c *code) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *code) here() int32 { return int32(len(c.list)) }

// class reads one byte of s.
func (c *code) class(s set) {
	i, ok := c.known[s]
	if !ok {
		i = int32(len(c.sets))
		c.sets = append(c.sets, s)
		c.known[s] = i
	}
	c.put(inst{op: opSet, x: i})
}

// text reads exactly s.
func (c *code) text(s string) {
	for i := range len(s) {
		c.class(span(s[i], s[i]))
	}
}

// either reads one of the alternatives.
func (c *code) either(list ...func()) {
	if len(list) == 0 {
		c.put(inst{op: opFail})
		return
	}
	var ends []int32
	for i, f := range list {
		if i == len(list)-1 {
			f()
			break
		}
		at := c.put(inst{op: opSplit})
		c.list[at].x = c.here()
		f()
		ends = append(ends, c.put(inst{op: opJump}))
		c.list[at].y = c.here()
	}
	for _, e := range ends {
		c.list[e].x = c.here()
	}
}

// words reads one of the texts, which are sorted and share their first n bytes; those have been read. Texts share the
// code of what they have in common, so that a long list takes few threads.
func (c *code) words(list []string, n int) {
	if len(list) == 1 {
		c.text(list[0][n:])
		return
	}
	var alternatives []func()
	if len(list) > 0 {
		first, last, m := list[0], list[len(list)-1], n
		for m < len(first) && first[m] == last[m] {
			m++
		}
		c.text(first[n:m])
		if len(first) == m { // the others continue it
			alternatives, list = append(alternatives, func() {}), list[1:]
		}
		for len(list) > 0 {
			k := 1
			for k < len(list) && list[k][m] == list[0][m] {
				k++
			}
			group := list[:k]
			alternatives, list = append(alternatives, func() { c.words(group, m) }), list[k:]
		}
	}
	c.either(alternatives...)
}

// maybe reads f or nothing.
func (c *code) maybe(f func()) { c.either(f, func() {}) }

// star reads f any number of times; f must read at least a byte.
func (c *code) star(f func()) {
	at := c.put(inst{op: opSplit})
	c.list[at].x = c.here()
	f()
	c.put(inst{op: opJump, x: at})
	c.list[at].y = c.here()
}

// times reads f at least lo and at most hi times; a negative hi means no limit.
func (c *code) times(lo, hi int, f func()) {
	for range lo {
		if f(); c.err != nil {
			return
		}
	}
	if hi < 0 {
		c.star(f)
		return
	}
	var ends []int32
	for range hi - lo {
		at := c.put(inst{op: opSplit})
		c.list[at].x = c.here()
		if f(); c.err != nil {
			return
		}
		ends = append(ends, at)
	}
	for _, e := range ends {
		c.list[e].y = c.here()
	}
}

// declare reserves a rule that may be called before it is defined.
func (c *code) declare() int32 {
	c.rules = append(c.rules, -1)
	return int32(len(c.rules) - 1)
}

// define makes f a rule. Its code is separate: code being appended must not fall through into it.
func (c *code) define(rule int32, f func()) {
	c.rules[rule] = c.here()
	f()
	c.put(inst{op: opRet})
}

// call runs a rule; link fills in its address.
func (c *code) call(rule int32) { c.put(inst{op: opCall, x: rule}) }

// link replaces rules by their addresses.
func (c *code) link() {
	for i := range c.list {
		if c.list[i].op == opCall {
			c.list[i].x = c.rules[c.list[i].x]
		}
	}
}

const never = math.MaxInt32 / 2

// needs computes for every instruction how many nested calls are required to reach the end of its rule; never if it
// cannot be reached.
func needs(list []inst) []int32 {
	need := make([]int32, len(list))
	for i := range need {
		need[i] = never
	}
	for changed := true; changed; {
		changed = false
		for i := len(list) - 1; i >= 0; i-- {
			n := never
			switch t := list[i]; t.op {
			case opRet, opMatch:
				n = 0
			case opSet:
				n = int(need[i+1])
			case opJump:
				n = int(need[t.x])
			case opSplit:
				n = int(min(need[t.x], need[t.y]))
			case opCall:
				n = int(max(need[t.x]+1, need[i+1]))
			}
			if n = min(n, never); int32(n) != need[i] {
				need[i] = int32(n)
				changed = true
			}
		}
	}
	return need
}

// loops reports whether a rule can call itself before it has read a byte.
func loops(list []inst) bool {
	state := make([]uint8, len(list)) // by address of a rule: 1 in progress, 2 done
	var rule func(at int32) bool
	rule = func(at int32) bool {
		switch state[at] {
		case 1:
			return true
		case 2:
			return false
		}
		state[at] = 1
		seen := map[int32]bool{}
		pending := []int32{at}
		for len(pending) > 0 {
			i := pending[len(pending)-1]
			if pending = pending[:len(pending)-1]; seen[i] {
				continue
			}
			seen[i] = true
			switch t := list[i]; t.op {
			case opJump:
				pending = append(pending, t.x)
			case opSplit:
				pending = append(pending, t.x, t.y)
			case opCall: // every rule reads at least a byte
				if rule(t.x) {
					return true
				}
			}
		}
		state[at] = 2
		return false
	}
	for _, t := range list {
		if t.op == opCall && rule(t.x) {
			return true
		}
	}
	return false
}
