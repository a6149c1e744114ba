// Package hf reads and writes model folders of Hugging Face transformers: Llama, DiffLlama, and our own class for the
// rest.
//
// Load checks config.json (config.go, rope.go, own.go), opens model.safetensors or its shards (shards.go) and checks
// every tensor against the shape that the configuration implies. Weights then returns our own parameters, assembled
// from rows of the folder's tensors by one table (layout.go). Open does all of this and returns a model ready to run.
// Export uses the same table in reverse (target.go), folds what a class cannot represent (fold.go) and writes the
// folder atomically (write.go).
//
// A folder is untrusted and nothing is guessed: unsupported settings that would change results are rejected with their
// key and value.
package hf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
)

// Folder is a checked model folder with its files open.
type Folder struct {
	Config    model.Config
	ModelType string // "llama", "diffllama" or "antiphase"; empty for a model of the authors' released modules
	BOS, Pad  int    // token ids, −1 if the folder names none
	EOS       []int  // token ids that end a text; empty if the folder names none

	Generation *Generation // sampling defaults

	dir      string
	released bool // in the authors' naming, part of which is only known from the files
	layout   layout
	shards   *shards
}

// IsFolder reports whether dir looks like a model folder: it has a config.json.
func IsFolder(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, "config.json"))
	return err == nil && st.Mode().IsRegular()
}

// Load reads the configuration and checks every tensor's presence, shape and type, without reading its values.
func Load(dir string) (*Folder, error) {
	f, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("model folder %s: %w", dir, err)
	}
	return f, nil
}

func load(dir string) (*Folder, error) {
	root, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	config, err := root.read("config.json", maxConfig)
	if err != nil {
		return nil, err
	}
	generation, err := root.read("generation_config.json", maxConfig)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f, err := parse(config, generation)
	if err != nil {
		return nil, err
	}
	f.dir = dir
	if f.shards, err = root.open(); err != nil {
		return nil, err
	}
	if f.released {
		f.layout.names = f.shards.releasedNames()
	}
	err = f.shards.check(f.layout)
	if err == nil {
		err = f.checkContext()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkContext compares the memory of the stated context with that of the weights: a small folder must not require
// gigabytes.
func (f *Folder) checkContext() error {
	weights := int64(0)
	for _, n := range f.DTypes() {
		weights += n
	}
	const free = 256 << 20
	if table := 4 * int64(f.Config.Context) * int64(f.Config.HeadDim); table > free && table > 4*weights {
		return fmt.Errorf("config.json: a context of %d tokens takes a rotary table of %d bytes, the weights are %d "+
			"bytes; state a shorter one",
			f.Config.Context, table, weights)
	}
	return nil
}

// Close closes the folder's files; its configuration remains valid.
func (f *Folder) Close() error { return f.shards.close() }

// Tokens are the folder's special ids.
func (f *Folder) Tokens() Tokens { return Tokens{BOS: f.BOS, Pad: f.Pad, EOS: f.EOS} }

// Values reads single parameters of a model of f.Config; mapped bytes are converted on demand.
func (f *Folder) Values() Values {
	byName := map[string]part{}
	for p := range f.layout.parts() {
		byName[p.param] = p
	}
	return func(name string) ([]float32, error) {
		p, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("model folder %s: there is no parameter %q", f.dir, name)
		}
		return f.shards.assemble(p)
	}
}

// Weights passes every parameter of a model of f.Config to set, by its name in the parameter table, in float32 and in
// the table's layout. set owns x.
func (f *Folder) Weights(set func(name string, x []float32) error) error {
	for p := range f.layout.parts() {
		x, err := f.shards.assemble(p)
		if err == nil {
			err = set(p.param, x)
		}
		if err != nil {
			return fmt.Errorf("model folder %s: %w", f.dir, err)
		}
	}
	return nil
}

// Open loads the folder into a new model on dev and closes the folder's files.
func Open(dev device.Device, dir string, mem layer.Memory) (*model.Model, *Folder, error) {
	f, err := Load(dir)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	m, err := model.New(dev, f.Config, mem)
	if err != nil {
		return nil, nil, fmt.Errorf("model folder %s: %w", dir, err)
	}
	left := len(m.Params.List)
	err = f.Weights(func(name string, x []float32) error {
		p := m.Params.Lookup(name)
		if p == nil || len(x) != p.Rows*p.Cols {
			return fmt.Errorf("%d values for %q do not fit the model's table", len(x), name)
		}
		m.Params.Set(dev, p, x)
		left--
		return nil
	})
	if err == nil && left != 0 {
		err = fmt.Errorf("model folder %s: %d parameters got no values", dir, left)
	}
	if err != nil {
		m.Free()
		return nil, nil, err
	}
	return m, f, nil
}
