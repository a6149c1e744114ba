package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"antiphase/internal/vfs"
)

// Format is the version of the layout that this package writes, and the only one it reads.
const Format = 1

const (
	manifestName = "MANIFEST.json"
	maxManifest  = 16 << 20 // a manifest is read whole; thousands of files fit
)

// fileName prevents a name from leaving its folder, on any system.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// Manifest lists a checkpoint's files. Sum is the SHA-256 of the manifest itself with an empty Sum, so that a change of
// any of its bytes is detected.
type Manifest struct {
	Format int     `json:"format"`
	Step   int64   `json:"step"`
	Files  []Entry `json:"files"` // by name
	Sum    string  `json:"sum"`
}

// Entry is one file of a checkpoint.
type Entry struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal, lower case
}

// Bytes returns the total length of all files.
func (m Manifest) Bytes() int64 {
	var sum int64
	for _, e := range m.Files {
		sum += e.Bytes
	}
	return sum
}

// render returns the canonical text of a manifest, with its Sum computed.
func (m Manifest) render() ([]byte, error) {
	m.Sum = ""
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(b, '\n'))
	m.Sum = hex.EncodeToString(sum[:])
	b, err = json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

// parseManifest accepts only what render would write. A later format is distinguished from damage by its sum: a bit
// flipped in the number alone leaves the sum of our format.
func parseManifest(b []byte) (Manifest, error) {
	var later struct{ Format int }
	_ = json.Unmarshal(b, &later) // the other fields of a later format are ignored
	newer := formatError{fmt.Errorf("format %d, this program reads format %d", later.Format, Format)}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil && later.Format > Format {
		return m, newer
	} else if err != nil {
		return m, fmt.Errorf("not a manifest: %w", err)
	}
	m.Format = Format
	want, err := m.render()
	if err != nil {
		return m, err
	}
	if ours := m.Sum != "" && bytes.Contains(want, []byte(m.Sum)); later.Format > Format && !ours {
		return m, newer
	}
	if !bytes.Equal(b, want) {
		return m, errors.New("its bytes do not match its own sum")
	}
	for i, e := range m.Files {
		if !fileName.MatchString(e.Name) || e.Name == manifestName || e.Bytes < 0 || i > 0 &&
			e.Name <= m.Files[i-1].Name {
			return m, fmt.Errorf("file %d: name %q or length %d cannot be right", i, e.Name, e.Bytes)
		}
	}
	return m, nil
}

func readManifest(fsys vfs.FS, path string) (Manifest, error) {
	b, err := vfs.ReadFile(fsys, path, maxManifest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Manifest{}, errors.New("the file is missing")
	case errors.Is(err, vfs.ErrTooLarge):
		return Manifest{}, fmt.Errorf("longer than %d bytes", maxManifest)
	case err != nil:
		return Manifest{}, systemError{err}
	}
	return parseManifest(b)
}
