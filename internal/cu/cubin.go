package cu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Compiled kernels are kept under the user's cache folder, one file each: the SHA-256 of the cubin, then the cubin. A file
// comes into being by a rename, so that two processes at once are right, and one whose hash does not fit is built again. A
// cache that cannot be read or written (a full disk, no home) only costs time.

// cubinKey names a compilation: text, options, architecture and compiler make it.
func cubinKey(s Source, arch string, compiler int) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%q\n", compiler, arch, s.Options)
	h.Write([]byte(s.Text))
	return hex.EncodeToString(h.Sum(nil))
}

// cubinPath is where a compilation is kept, "" when there is nowhere.
func cubinPath(key string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "antiphase", "cubin", key)
}

// readCubin finds a compilation that was kept and is whole.
func readCubin(key string) ([]byte, bool) {
	path := cubinPath(key)
	if path == "" {
		return nil, false
	}
	b, err := os.ReadFile(path)
	if err != nil || len(b) <= sha256.Size {
		return nil, false
	}
	sum := sha256.Sum256(b[sha256.Size:])
	return b[sha256.Size:], bytes.Equal(sum[:], b[:sha256.Size])
}

// writeCubin keeps a compilation if it can.
func writeCubin(key string, cubin []byte) {
	path := cubinPath(key)
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return
	}
	sum := sha256.Sum256(cubin)
	_, err = f.Write(append(sum[:], cubin...))
	if f.Close() != nil || err != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name()) // no cache is right too
	}
}
