package vfs

import "os"

// OS is the machine's file system.
type OS struct{}

// Create implements FS.
func (OS) Create(name string) (File, error) { return file(os.Create(name)) }

// Open implements FS.
func (OS) Open(name string) (File, error) { return file(os.Open(name)) }

// file keeps a nil *os.File from becoming a File that is not nil.
func file(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements FS.
func (OS) Mkdir(name string) error { return os.Mkdir(name, 0o777) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat implements FS.
func (OS) Stat(name string) (Info, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	link := st.Mode()&os.ModeSymlink != 0
	if link {
		if target, err := os.Stat(name); err == nil { // a dangling link is still something there
			st = target
		}
	}
	return Info{Size: st.Size(), Dir: st.IsDir(), Link: link}, nil
}

// SyncDir implements FS.
func (OS) SyncDir(name string) error { return syncDir(name) }

// Free implements FS.
func (OS) Free(name string) (int64, error) {
	n, err := free(name)
	if err != nil {
		return 0, &os.PathError{Op: "free space", Path: name, Err: err}
	}
	return n, nil
}
