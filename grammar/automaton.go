package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	maxDepth   = 128  // nested calls, which bounds the nesting of a text
	maxThreads = 2048 // parses of the text so far; further ones are dropped, which only forbids more
	maxChoices = 1024 // alternatives, or optional properties in a row; schemas with more are rejected
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

// cache holds the stacks and states met so far. Stacks are numbered within it, so its states refer to it alone.
type cache struct {
	stack  []frame
	frames map[frame]int32
	states map[string]*State
}

// State is the automaton's state after some bytes. It belongs to its grammar.
type State struct {
	cache   *cache
	threads []thread // each at an opSet or opMatch
	next    [256]*State
	known   set // bytes whose next state is known; nil there means a dead end
	accept  bool
	final   bool // nothing can follow
	mask    []uint64
}

// reset begins a new cache. Matchers go on with the states they hold, and with the cache of these.
func (g *Grammar) reset() {
	g.cache = &cache{stack: []frame{{}}, frames: map[frame]int32{}, states: map[string]*State{}}
}

// start is the state before the first byte.
func (g *Grammar) start() *State {
	c := closure{cache: g.cache}
	c.add(g, thread{pc: g.entry})
	return g.state(&c)
}

// closure collects threads, following all instructions that read no byte.
type closure struct {
	cache *cache
	list  []thread
	seen  map[thread]bool
}

func (c *closure) add(g *Grammar, t thread) {
	if c.seen == nil {
		c.seen = map[thread]bool{}
	}
	for {
		if c.seen[t] || len(c.list) >= maxThreads || c.cache.stack[t.stack].depth+g.need[t.pc] > maxDepth {
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
			t = thread{i.x, c.cache.push(t.pc+1, t.stack)}
		case opRet:
			f := c.cache.stack[t.stack]
			t = thread{f.ret, f.up}
		default:
			return
		}
	}
}

// push returns the number of the stack with one more call.
func (c *cache) push(ret, up int32) int32 {
	f := frame{ret, up, c.stack[up].depth + 1}
	n, ok := c.frames[f]
	if !ok {
		n = int32(len(c.stack))
		c.stack = append(c.stack, f)
		c.frames[f] = n
	}
	return n
}

// state returns the unique state of a set of threads.
func (g *Grammar) state(c *closure) *State {
	list, states := c.list, c.cache.states
	slices.SortFunc(list, func(a, b thread) int {
		return cmp.Or(cmp.Compare(a.pc, b.pc),
			cmp.Compare(a.stack, b.stack))
	})
	key := make([]byte, 0, 8*len(list))
	for _, t := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(t.pc))
		key = binary.LittleEndian.AppendUint32(key, uint32(t.stack))
	}
	if s, ok := states[string(key)]; ok {
		return s
	}
	s := &State{cache: c.cache, threads: list, final: true}
	for _, t := range list {
		if g.code[t.pc].op == opMatch {
			s.accept = true
		} else {
			s.final = false
		}
	}
	s.final = s.final && s.accept
	if len(states) < maxStates {
		states[string(key)] = s
	}
	return s
}

// step reads a byte; nil if no text continues with it.
func (g *Grammar) step(s *State, b byte) *State {
	if s.known.has(b) {
		return s.next[b]
	}
	c := closure{cache: s.cache}
	for _, t := range s.threads {
		if i := g.code[t.pc]; i.op == opSet && g.sets[i.x].has(b) {
			c.add(g, thread{t.pc + 1, t.stack})
		}
	}
	var n *State
	if len(c.list) > 0 {
		n = g.state(&c)
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
	return len(g.code)*inst + len(g.cache.stack)*48 + len(g.cache.states)*(state+8*thread+8*g.words)
}
