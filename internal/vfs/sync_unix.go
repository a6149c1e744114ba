//go:build unix

package vfs

import "os"

// syncDir fsyncs the folder itself: without it a power loss may undo a rename.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
