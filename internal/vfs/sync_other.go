//go:build !unix

package vfs

// syncDir does nothing: a folder cannot be flushed here, and the file system journals names in order.
func syncDir(string) error { return nil }
