// Package vfstest has the file systems of crash tests.
//
// [Mem] lives in memory and knows, of every file, the bytes last synced and, of every folder, the names last synced and
// the changes since. [Mem.Crash] gives one file system a power loss could leave behind. [Faulty] wraps any file system
// and shows each operation to a function first, which may fail it, or take a Crash at that very point.
package vfstest

import (
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"antiphase/internal/vfs"
)

// Mem is a file system in memory. Its zero value is not ready: use NewMem.
type Mem struct {
	mu   sync.Mutex
	root *node
	// Cap bounds the bytes of all files together; 0 for no bound. Past it a write takes what fits and fails with
	// ENOSPC.
	Cap int64
}

// node is a file or a folder.
type node struct {
	data, synced []byte           // file: contents now, and at the last Sync
	names        map[string]*node // folder: names now; nil for a file
	durable      map[string]*node // folder: names at the last SyncDir
	log          []change         // folder: changes since then
}

// change is one atomic step in a folder: a creation or removal sets one name, a rename two. A nil node is a removal.
type change map[string]*node

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{root: newDir()} }

func newDir() *node { return &node{names: map[string]*node{}, durable: map[string]*node{}} }

func (n *node) apply(c change) {
	n.log = append(n.log, c)
	merge(n.names, c)
}

func merge(names map[string]*node, c change) {
	for k, v := range c {
		if v == nil {
			delete(names, k)
		} else {
			names[k] = v
		}
	}
}

func fail(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

// find walks to path; the caller holds mu.
func (m *Mem) find(path string) *node {
	n := m.root
	for _, part := range strings.Split(filepath.ToSlash(filepath.Clean(path)), "/") {
		if part == "" || part == "." {
			continue
		}
		if n = n.names[part]; n == nil {
			return nil
		}
	}
	return n
}

// parent finds the folder that holds path, and path's name in it.
func (m *Mem) parent(path string) (*node, string) {
	dir := m.find(filepath.Dir(path))
	if dir != nil && dir.names == nil {
		dir = nil
	}
	return dir, filepath.Base(path)
}

// Create implements vfs.FS.
func (m *Mem) Create(path string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, name := m.parent(path)
	if dir == nil {
		return nil, fail("create", path, fs.ErrNotExist)
	}
	n := dir.names[name]
	switch {
	case n == nil:
		n = &node{}
		dir.apply(change{name: n})
	case n.names != nil:
		return nil, fail("create", path, syscall.EISDIR)
	}
	n.data = nil
	return &handle{m: m, n: n, path: path}, nil
}

// Append implements vfs.FS.
func (m *Mem) Append(path string, size int64) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil {
		dir, name := m.parent(path)
		if dir == nil {
			return nil, fail("open", path, fs.ErrNotExist)
		}
		n = &node{}
		dir.apply(change{name: n})
	}
	if n.names != nil {
		return nil, fail("open", path, syscall.EISDIR)
	}
	n.data = append(slices.Clone(n.data[:min(int(size), len(n.data))]), make([]byte, max(0, int(size)-len(n.data)))...)
	return &handle{m: m, n: n, path: path}, nil
}

// Map implements vfs.FS. The bytes are those of this moment.
func (m *Mem) Map(path string) ([]byte, func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	switch {
	case n == nil:
		return nil, nil, fail("open", path, fs.ErrNotExist)
	case n.names != nil:
		return nil, nil, fail("open", path, vfs.ErrNotRegular)
	}
	return slices.Clone(n.data), func() error { return nil }, nil
}

// Open implements vfs.FS.
func (m *Mem) Open(path string) (vfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil {
		return nil, fail("open", path, fs.ErrNotExist)
	}
	return &handle{m: m, n: n, path: path}, nil
}

// Mkdir implements vfs.FS.
func (m *Mem) Mkdir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, name := m.parent(path)
	switch {
	case dir == nil:
		return fail("mkdir", path, fs.ErrNotExist)
	case dir.names[name] != nil:
		return fail("mkdir", path, fs.ErrExist)
	}
	dir.apply(change{name: newDir()})
	return nil
}

// Rename implements vfs.FS; both names must be in one folder.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, old := m.parent(from)
	other, name := m.parent(to)
	switch {
	case dir == nil || dir.names[old] == nil:
		return fail("rename", from, fs.ErrNotExist)
	case other != dir:
		return fail("rename", to, syscall.EXDEV)
	}
	if n := dir.names[name]; n != nil && n.names != nil && len(n.names) > 0 {
		return fail("rename", to, syscall.ENOTEMPTY)
	}
	dir.apply(change{old: nil, name: dir.names[old]})
	return nil
}

// Remove implements vfs.FS.
func (m *Mem) Remove(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, name := m.parent(path)
	if dir == nil || dir.names[name] == nil {
		return fail("remove", path, fs.ErrNotExist)
	}
	if len(dir.names[name].names) > 0 {
		return fail("remove", path, syscall.ENOTEMPTY)
	}
	dir.apply(change{name: nil})
	return nil
}

// ReadDir implements vfs.FS.
func (m *Mem) ReadDir(path string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	switch {
	case n == nil:
		return nil, fail("readdir", path, fs.ErrNotExist)
	case n.names == nil:
		return nil, fail("readdir", path, syscall.ENOTDIR)
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

// Stat implements vfs.FS.
func (m *Mem) Stat(path string) (vfs.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil {
		return vfs.Info{}, fail("stat", path, fs.ErrNotExist)
	}
	return vfs.Info{Size: int64(len(n.data)), Dir: n.names != nil}, nil
}

// SyncDir implements vfs.FS.
func (m *Mem) SyncDir(path string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(path)
	if n == nil || n.names == nil {
		return fail("syncdir", path, fs.ErrNotExist)
	}
	n.durable, n.log = maps.Clone(n.names), nil
	return nil
}

// Free implements vfs.FS.
func (m *Mem) Free(string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.free(), nil
}

func (m *Mem) free() int64 {
	if m.Cap == 0 {
		return 1 << 62
	}
	return max(0, m.Cap-m.root.bytes())
}

func (n *node) bytes() int64 {
	sum := int64(len(n.data))
	for _, child := range n.names {
		sum += child.bytes()
	}
	return sum
}

// handle is an open file: a read position, or a place to append.
type handle struct {
	m    *Mem
	n    *node
	path string
	at   int
}

func (h *handle) Read(p []byte) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.at >= len(h.n.data) {
		return 0, io.EOF
	}
	n := copy(p, h.n.data[h.at:])
	h.at += n
	return n, nil
}

func (h *handle) Write(p []byte) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	fits := int(min(int64(len(p)), h.m.free()))
	h.n.data = append(h.n.data, p[:fits]...)
	if fits < len(p) {
		return fits, fail("write", h.path, syscall.ENOSPC)
	}
	return fits, nil
}

func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	end := int(off) + len(p)
	grow := max(0, end-len(h.n.data))
	if fits := int(min(int64(grow), h.m.free())); fits < grow {
		return 0, fail("write", h.path, syscall.ENOSPC)
	}
	h.n.data = append(h.n.data, make([]byte, grow)...)
	return copy(h.n.data[off:], p), nil
}

func (h *handle) Sync() error {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.n.synced = slices.Clone(h.n.data)
	return nil
}

func (h *handle) Close() error { return nil }
