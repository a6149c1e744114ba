package main

import (
	"errors"
	"io"
	"os"

	"antiphase/internal/vfs"
)

// writeBytes is writeWhole of some bytes.
func writeBytes(path string, b []byte) error {
	return writeWhole(path, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// writeWhole writes a file atomically; a device or a pipe is written to directly.
func writeWhole(path string, write func(io.Writer) error) error {
	st, err := os.Stat(path)
	if err != nil || st.Mode().IsRegular() {
		return vfs.Write(vfs.OS{}, path, write)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
