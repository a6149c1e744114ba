package hf

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// ManifestFile lists the files of an exported folder with their hashes. It marks the folder as ours: only a folder that
// holds exactly what its manifest lists may be replaced.
const ManifestFile = "antiphase.json"

const (
	manifestKind = "antiphase export"
	maxManifest  = 16 << 20 // bytes
)

// Manifest is the content of ManifestFile.
type Manifest struct {
	Kind   string `json:"kind"` // always manifestKind
	Format int    `json:"format"`
	Files  []Hash `json:"files"` // by name
}

// Hash is one file of a manifest.
type Hash struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal, lower case
}

func (m Manifest) render() ([]byte, error) {
	m.Kind, m.Format = manifestKind, 1
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

func parseManifest(b []byte) (m Manifest, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err = d.Decode(&m); err != nil {
		return m, err
	}
	if m.Kind != manifestKind || m.Format != 1 {
		return m, fmt.Errorf("is %q of format %d, not %q of format 1", m.Kind, m.Format, manifestKind)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Name) || strings.ContainsAny(f.Name, "/\\:\x00") || f.Name == "." ||
			f.Name == ManifestFile {
			return m, fmt.Errorf("%q is not a plain file name", f.Name)
		}
	}
	return m, nil
}

// ReadManifest reads the manifest of an exported folder. Without one the error is fs.ErrNotExist.
func ReadManifest(dir string) (Manifest, error) { return readManifest(vfs.OS{}, dir) }

func readManifest(fsys vfs.FS, dir string) (Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	if info, err := fsys.Stat(path); err != nil || info.Dir || info.Link {
		return Manifest{}, cmp.Or(err, fmt.Errorf("%s is not a file", ManifestFile))
	}
	b, err := vfs.ReadFile(fsys, path, maxManifest)
	if err != nil {
		return Manifest{}, err
	}
	m, err := parseManifest(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return m, err
}

// Changed lists the files of a folder that no longer match the manifest: missing or modified.
func (m Manifest) Changed(dir string) ([]string, error) { return m.changed(vfs.OS{}, dir) }

func (m Manifest) changed(fsys vfs.FS, dir string) (names []string, err error) {
	for _, want := range m.Files {
		got, err := hashFile(fsys, dir, want.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if got != want {
			names = append(names, want.Name)
		}
	}
	return names, nil
}

// extra lists what a folder holds besides the manifest and its files.
func (m Manifest) extra(fsys vfs.FS, dir string) (names []string, err error) {
	all, err := fsys.ReadDir(dir)
	for _, name := range all {
		if name != ManifestFile && !slices.ContainsFunc(m.Files, func(h Hash) bool { return h.Name == name }) {
			names = append(names, name)
		}
	}
	return names, err
}

func hashFile(fsys vfs.FS, dir, name string) (Hash, error) {
	path := filepath.Join(dir, name)
	info, err := fsys.Stat(path)
	if err != nil || info.Dir || info.Link {
		return Hash{}, err
	}
	f, err := fsys.Open(path)
	if err != nil {
		return Hash{}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	return Hash{Name: name, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, errors.Join(err, f.Close())
}

// ours returns the manifest of an exported folder that is unmodified, so that nothing is lost by replacing it. For any
// other folder the error says why it cannot be replaced.
func ours(fsys vfs.FS, dir string) (Manifest, error) {
	m, err := readManifest(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("was not written by export (it has no %s)", ManifestFile)
	}
	if err != nil {
		return m, err
	}
	extra, err := m.extra(fsys, dir)
	if err != nil {
		return m, err
	}
	if len(extra) > 0 {
		return m, fmt.Errorf("holds %q, which export did not write", extra[0])
	}
	changed, err := m.changed(fsys, dir)
	if err != nil {
		return m, err
	}
	if len(changed) > 0 {
		return m, fmt.Errorf("holds %q, which was changed after export wrote it", changed[0])
	}
	return m, nil
}

// remove deletes the files of a manifest and then the folder. Files added meanwhile are kept, and are an error.
func (m Manifest) remove(fsys vfs.FS, dir string) error {
	for _, f := range append(m.Files, Hash{Name: ManifestFile}) {
		if err := fsys.Remove(filepath.Join(dir, f.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.Remove(dir)
}
