package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"antiphase/train"
)

// modelHash identifies the content of a model: its configuration, its weights and its tokenizer. A checkpoint's
// manifest has the hashes of the latter two; a Hugging Face folder is read completely.
func modelHash(l *loaded) (string, error) {
	h := sha256.New()
	c, err := json.Marshal(l.Model.Config)
	if err != nil {
		return "", err
	}
	h.Write(c)
	if l.Manifest != nil {
		for _, e := range l.Manifest.Files {
			if train.IsWeights(e.Name) || e.Name == "tokenizer.json" {
				fmt.Fprintf(h, "%s %s\n", e.Name, e.SHA256)
			}
		}
		return hex.EncodeToString(h.Sum(nil)[:12]), nil
	}
	if l.Hash != "" {
		return l.Hash, nil
	}
	return hashFolder(h, l.Dir)
}

// hashFolder adds the content of a folder's files.
func hashFolder(h hash.Hash, dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
			continue // also what a link leads to: a device has no end
		}
		in, err := os.Open(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s\n", f.Name())
		_, err = io.Copy(h, in)
		in.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}
