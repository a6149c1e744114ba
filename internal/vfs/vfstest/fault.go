package vfstest

import (
	"fmt"
	"sync/atomic"

	"antiphase/internal/vfs"
)

// Op is one operation on a file system: a change, a sync or a read.
type Op struct {
	Index int    // 0 for the first since the wrapper was made
	Kind  string // create append open map mkdir rename remove readdir stat syncdir free; write read sync close
	Path  string
}

// String formats the operation for a test failure.
func (o Op) String() string { return fmt.Sprintf("#%d %s %s", o.Index, o.Kind, o.Path) }

// Faulty passes every operation to Hook before it is done. An error from Hook is the operation's result: nothing is
// done, except that a write has written half of its bytes. Hook runs in the caller's goroutine, of which there may be
// several.
type Faulty struct {
	FS   vfs.FS
	Hook func(Op) error
	// Short makes a failing write return no error but a short count.
	Short bool
	count atomic.Int64
}

// Count returns the operations seen so far.
func (f *Faulty) Count() int { return int(f.count.Load()) }

func (f *Faulty) hook(kind, path string) error {
	return f.Hook(Op{int(f.count.Add(1)) - 1, kind, path})
}

// Create implements vfs.FS.
func (f *Faulty) Create(name string) (vfs.File, error) { return f.file("create", name, f.FS.Create) }

// Open implements vfs.FS.
func (f *Faulty) Open(name string) (vfs.File, error) { return f.file("open", name, f.FS.Open) }

// Append implements vfs.FS.
func (f *Faulty) Append(name string, size int64) (vfs.File, error) {
	return f.file("append", name, func(name string) (vfs.File, error) { return f.FS.Append(name, size) })
}

// Map implements vfs.FS.
func (f *Faulty) Map(name string) ([]byte, func() error, error) {
	if err := f.hook("map", name); err != nil {
		return nil, nil, err
	}
	return f.FS.Map(name)
}

func (f *Faulty) file(kind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	if err := f.hook(kind, name); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, file, name}, nil
}

// Mkdir implements vfs.FS.
func (f *Faulty) Mkdir(name string) error {
	if err := f.hook("mkdir", name); err != nil {
		return err
	}
	return f.FS.Mkdir(name)
}

// Rename implements vfs.FS.
func (f *Faulty) Rename(from, to string) error {
	if err := f.hook("rename", to); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Remove implements vfs.FS.
func (f *Faulty) Remove(name string) error {
	if err := f.hook("remove", name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// ReadDir implements vfs.FS.
func (f *Faulty) ReadDir(name string) ([]string, error) {
	if err := f.hook("readdir", name); err != nil {
		return nil, err
	}
	return f.FS.ReadDir(name)
}

// Stat implements vfs.FS.
func (f *Faulty) Stat(name string) (vfs.Info, error) {
	if err := f.hook("stat", name); err != nil {
		return vfs.Info{}, err
	}
	return f.FS.Stat(name)
}

// SyncDir implements vfs.FS.
func (f *Faulty) SyncDir(name string) error {
	if err := f.hook("syncdir", name); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

// Free implements vfs.FS.
func (f *Faulty) Free(name string) (int64, error) {
	if err := f.hook("free", name); err != nil {
		return 0, err
	}
	return f.FS.Free(name)
}

type faultyFile struct {
	f    *Faulty
	file vfs.File
	path string
}

func (x *faultyFile) Read(p []byte) (int, error) {
	if err := x.f.hook("read", x.path); err != nil {
		return 0, err
	}
	return x.file.Read(p)
}

func (x *faultyFile) Write(p []byte) (int, error) { return x.write(p, x.file.Write) }

func (x *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	return x.write(p, func(p []byte) (int, error) { return x.file.WriteAt(p, off) })
}

func (x *faultyFile) write(p []byte, write func([]byte) (int, error)) (int, error) {
	if err := x.f.hook("write", x.path); err != nil {
		n, werr := write(p[:len(p)/2])
		if x.f.Short {
			return n, werr
		}
		return n, err
	}
	return write(p)
}

func (x *faultyFile) Sync() error {
	if err := x.f.hook("sync", x.path); err != nil {
		return err
	}
	return x.file.Sync()
}

func (x *faultyFile) Close() error {
	err := x.f.hook("close", x.path)
	if cerr := x.file.Close(); err == nil {
		err = cerr
	}
	return err
}
