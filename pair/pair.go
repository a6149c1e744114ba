// Package pair holds the embedded models, so that the program is usable before anything is trained: a differential
// model and a Transformer of equal size, trained on the same batches. files/README.md is their card.
//
// A model is one file ([Write], [Parse]): a safetensors file with matrices in int8, one scale per row, and with the
// configuration and the tokenizer in its metadata.
package pair

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed files
var embedded embed.FS

// Files holds the models; tests replace it.
var Files fs.FS = embedded

const ending = ".safetensors"

// ErrNone means that this program was built without models.
var ErrNone = errors.New("this program was built without models of its own")

// Names lists the models, the differential one first; none if the files are missing.
func Names() []string {
	list, err := fs.Glob(Files, "files/*"+ending) // sorted: diff comes before transformer
	if err != nil {
		return nil
	}
	for i, path := range list {
		list[i] = strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ending)
	}
	return list
}

// Open reads a model by its name.
func Open(name string) (*Model, error) {
	b, err := fs.ReadFile(Files, "files/"+name+ending)
	if errors.Is(err, fs.ErrNotExist) && len(Names()) == 0 {
		return nil, ErrNone
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no model %q; there are %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return Parse(b)
}

// Hash identifies the content of a model's file.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}
