package vfstest

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
)

// Crash returns a state that a power loss now could leave. With a nil rng only synced data remains. Otherwise each
// unsynced change of a folder remains or is lost independently, except that a change of a name is lost if an earlier
// change of it was, because no journal keeps the second without the first. An unsynced file is in its synced state, its
// current state, truncated, or of its current length with pages of zeros; the synced prefix that has not changed
// remains. The file system itself is not changed.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{root: m.root.crash(rng), Cap: m.Cap}
}

// Clone returns a copy in which everything is as it is now, and durable.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{root: m.root.clone(), Cap: m.Cap}
}

// String lists the current contents, "a=bytes b/(c=bytes)", sorted: two file systems with the same listing behave
// alike.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.root.list()
}

// Files returns the contents of every file below a folder by relative path.
func (m *Mem) Files(dir string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]byte{}
	if n := m.find(dir); n != nil {
		n.files("", out)
	}
	return out
}

func (n *node) files(path string, out map[string][]byte) {
	for name, child := range n.names {
		at := filepath.Join(path, name)
		if child.names == nil {
			out[at] = slices.Clone(child.data)
		}
		child.files(at, out)
	}
}

func (n *node) list() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		if child := n.names[name]; child.names != nil {
			out = append(out, name+"/("+child.list()+")")
		} else {
			out = append(out, name+"="+string(child.data))
		}
	}
	return strings.Join(out, " ")
}

func (n *node) clone() *node {
	if n.names == nil {
		return &node{data: slices.Clone(n.data), synced: slices.Clone(n.data)}
	}
	return folder(n.names, (*node).clone)
}

// folder makes a folder of durable names, applying f to each child.
func folder(names map[string]*node, f func(*node) *node) *node {
	out := newDir()
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted: the same seed gives the same crash
		out.names[name] = f(names[name])
	}
	out.durable = maps.Clone(out.names)
	return out
}

func (n *node) crash(rng *rand.Rand) *node {
	if n.names == nil {
		b := n.survivingBytes(rng)
		return &node{data: b, synced: slices.Clone(b)}
	}
	names := maps.Clone(n.durable)
	lost := map[string]bool{}
	for _, c := range n.log {
		keep := rng != nil && rng.IntN(2) == 0
		for name := range c {
			keep = keep && !lost[name]
		}
		if keep {
			merge(names, c)
			continue
		}
		for name := range c {
			lost[name] = true
		}
	}
	return folder(names, func(child *node) *node { return child.crash(rng) })
}

func (n *node) survivingBytes(rng *rand.Rand) []byte {
	if rng == nil || slices.Equal(n.data, n.synced) {
		return slices.Clone(n.synced)
	}
	now := slices.Clone(n.data)
	safe := 0 // length of the prefix that was synced and has not changed since
	for safe < min(len(now), len(n.synced)) && now[safe] == n.synced[safe] {
		safe++
	}
	switch rng.IntN(4) {
	case 0:
		return slices.Clone(n.synced)
	case 1:
		return now
	case 2:
		return now[:safe+rng.IntN(len(now)-safe+1)]
	}
	const page = 16 // small, so that small test files have several
	for at := safe; at < len(now); at += page {
		if rng.IntN(2) == 0 {
			clear(now[at:min(at+page, len(now))])
		}
	}
	return now
}
