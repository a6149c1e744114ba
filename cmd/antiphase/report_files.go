package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"antiphase/eval/report"
	"antiphase/internal/vfs"
)

// madeFile lists the files that report wrote into a folder, so that a later call replaces those and nothing else: not a
// file of the same name that somebody else put there, nor one of ours that was edited since.
const madeFile = "made-by-report.json"

// made is the content of madeFile: SHA-256 by name.
type made struct {
	Files map[string]string `json:"files"`
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// checkFiles rejects a folder in which files would be replaced that report did not write. A file that would not change
// may be anybody's.
func checkFiles(dir string, list []report.File) error {
	known, err := readMade(dir)
	if err != nil {
		return err
	}
	for _, f := range list {
		path := filepath.Join(dir, f.Name)
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		b := []byte(nil)
		if st.Mode().IsRegular() {
			if b, err = vfs.ReadFile(vfs.OS{}, path, maxReport); err != nil {
				return err
			}
		}
		if sum := hashOf(b); b == nil || sum != known.Files[f.Name] && sum != hashOf(f.Data) {
			return usage(fmt.Errorf(
				"--files: %s already exists and is not as an earlier report wrote it; name another folder, "+
					"or move it away", path))
		}
	}
	return nil
}

// maxReport is a bound on the bytes of a file that a report reads.
const maxReport = 1 << 30

// readMade reads the list of a folder; there is none in a new one.
func readMade(dir string) (made, error) {
	var m made
	path := filepath.Join(dir, madeFile)
	b, err := vfs.ReadFile(vfs.OS{}, path, maxReport)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, badInput{fmt.Errorf("--files: %s: %w", path, err)}
	}
	return m, nil
}

// writeFiles writes the files that checkFiles allowed, then the list. After a call that was killed between the two, the
// same call replaces what it wrote, and a report on other results refuses it.
func writeFiles(dir string, list []report.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	m, err := readMade(dir)
	if err != nil {
		return err
	}
	if m.Files == nil {
		m.Files = map[string]string{}
	}
	for _, f := range list {
		if err := writeBytes(filepath.Join(dir, f.Name), f.Data); err != nil {
			return err
		}
		m.Files[f.Name] = hashOf(f.Data)
	}
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return writeBytes(filepath.Join(dir, madeFile), append(b, '\n'))
}
