package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	maxDepth   = 128  // nested calls, which bounds the nesting of a text
	maxThreads = 512  // parses of the text so far; further ones are dropped, which only forbids more
	maxStates  = 2048 // states cached before all are dropped and rebuilt
)

// frame is one call that has not returned; a stack is a linked list of them. Equal stacks have equal numbers.
type frame struct {
	ret   int32 // return address
	up    int32 // the frame below, 0 for none
	depth int32
}

// thread is one parse of the text so far.
type thread struct{ pc, stack int32 }

// State is the automaton's state after some bytes. It belongs to its grammar.
type State struct {
	threads []thread // each at an opSet or opMatch
	next    [256]*State
	known   set // bytes whose next state is known; nil there means a dead end
	accept  bool
	final   bool // nothing can follow
	mask    []uint64
}

// reset drops all cached states. Matchers keep those they hold.
func (g *Grammar) reset() {
	g.stack = []frame{{}}
	g.frames = map[frame]int32{}
	g.states = map[string]*State{}
}

// start is the state before the first byte.
func (g *Grammar) start() *State {
	var c closure
	c.add(g, thread{pc: g.entry})
	return g.state(c.list)
}

// closure collects threads, following all instructions that read no byte.
type closure struct {
	list []thread
	seen map[thread]bool
}

func (c *closure) add(g *Grammar, t thread) {
	if c.seen == nil {
		c.seen = map[thread]bool{}
	}
	for {
		if c.seen[t] || len(c.list) >= maxThreads || g.stack[t.stack].depth+g.need[t.pc] > maxDepth {
			return
		}
		c.seen[t] = true
		switch i := g.code[t.pc]; i.op {
		case opSet, opMatch:
			c.list = append(c.list, t)
			return
		case opJump:
			t.pc = i.x
		case opSplit:
			c.add(g, thread{i.x, t.stack})
			t.pc = i.y
		case opCall:
			t = thread{i.x, g.push(t.pc+1, t.stack)}
		case opRet:
			f := g.stack[t.stack]
			t = thread{f.ret, f.up}
		default:
			return
		}
	}
}

// push returns the number of the stack with one more call.
func (g *Grammar) push(ret, up int32) int32 {
	f := frame{ret, up, g.stack[up].depth + 1}
	n, ok := g.frames[f]
	if !ok {
		n = int32(len(g.stack))
		g.stack = append(g.stack, f)
		g.frames[f] = n
	}
	return n
}

// state returns the unique state of a set of threads.
func (g *Grammar) state(list []thread) *State {
	slices.SortFunc(list, func(a, b thread) int { return cmp.Or(cmp.Compare(a.pc, b.pc), cmp.Compare(a.stack, b.stack)) })
	key := make([]byte, 0, 8*len(list))
	for _, t := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(t.pc))
		key = binary.LittleEndian.AppendUint32(key, uint32(t.stack))
	}
	if s, ok := g.states[string(key)]; ok {
		return s
	}
	s := &State{threads: list, final: true}
	for _, t := range list {
		if g.code[t.pc].op == opMatch {
			s.accept = true
		} else {
			s.final = false
		}
	}
	s.final = s.final && s.accept
	if len(g.states) < maxStates {
		g.states[string(key)] = s
	}
	return s
}

// step reads a byte; nil if no text continues with it.
func (g *Grammar) step(s *State, b byte) *State {
	if s.known.has(b) {
		return s.next[b]
	}
	var c closure
	for _, t := range s.threads {
		if i := g.code[t.pc]; i.op == opSet && g.sets[i.x].has(b) {
			c.add(g, thread{t.pc + 1, t.stack})
		}
	}
	var n *State
	if len(c.list) > 0 {
		n = g.state(c.list)
	}
	s.next[b] = n
	s.known.add(b, b)
	return n
}

// Size is roughly the number of bytes the grammar holds.
func (g *Grammar) Size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	const state, thread, inst = 2048 + 256, 8, 16
	return len(g.code)*inst + len(g.stack)*48 + len(g.states)*(state+8*thread+8*g.words)
}
