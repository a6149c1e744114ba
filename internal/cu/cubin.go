package cu

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Compiled kernels are cached under the user's cache folder, one file each: the SHA-256 of the cubin, then the cubin. A
// file is created by a rename, so concurrent processes are safe, and a file whose hash does not match is rebuilt. A
// cache that cannot be read or written (a full disk, no home) only costs time.

// cubinKey identifies a compilation by text, options, architecture and compiler.
func cubinKey(s Source, arch string, compiler int) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%q\n", compiler, arch, s.Options)
	h.Write([]byte(s.Text))
	return hex.EncodeToString(h.Sum(nil))
}

// cubinPath is the path of a cached compilation, "" if there is no cache.
func cubinPath(key string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "antiphase", "cubin", key)
}

// readCubin returns a cached compilation that is intact.
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

// writeCubin caches a compilation if it can.
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
		_ = os.Remove(f.Name()) // running without a cache is fine
	}
}
