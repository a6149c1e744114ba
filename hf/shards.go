package hf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/safetensors"
)

const (
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	maxIndex    = 64 << 20 // bytes of an index
)

// root is a model folder opened with os.Root, so that no link in it leads outside. Hugging Face's cache links a
// snapshot's files to models--ORG--NAME/blobs; there the boundary is models--ORG--NAME.
type root struct {
	*os.Root
	dir, sub string // the folder, and its place within Root
}

func openRoot(dir string) (*root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	at, sub := dir, "."
	if up := filepath.Dir(dir); filepath.Base(up) == "snapshots" &&
		strings.HasPrefix(filepath.Base(filepath.Dir(up)), "models--") {
		at, sub = filepath.Dir(up), filepath.Join("snapshots", filepath.Base(dir))
	}
	r, err := os.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	return &root{r, dir, sub}, nil
}

// isFile rejects links that lead out of the folder and anything that is not a regular file: reading a pipe would never
// end.
func (r *root) isFile(name string) error {
	st, err := r.Stat(filepath.Join(r.sub, name))
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	return err
}

// read reads a whole file of at most limit bytes.
func (r *root) read(name string, limit int64) ([]byte, error) {
	if err := r.isFile(name); err != nil {
		return nil, err
	}
	f, err := r.Root.Open(filepath.Join(r.sub, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return b, err
}

// ReadFile reads a file of a model folder of at most limit bytes. Links out of the folder are not followed, except the
// cache's own.
func ReadFile(dir, name string, limit int64) ([]byte, error) {
	r, err := openRoot(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.read(name, limit)
}

// shards are the open weight files and the tensors that each holds.
type shards struct {
	files []*safetensors.File
	at    map[string]*safetensors.File
}

// open opens model.safetensors, or the shards listed in its index.
func (r *root) open() (*shards, error) {
	if _, err := r.Stat(filepath.Join(r.sub, weightsFile)); err == nil {
		return r.openFiles(map[string][]string{weightsFile: nil})
	}
	b, err := r.read(indexFile, maxIndex)
	if errors.Is(err, os.ErrNotExist) {
		return nil, r.noWeights()
	}
	if err != nil {
		return nil, err
	}
	files, err := parseIndex(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	return r.openFiles(files)
}

// noWeights reports what is missing, and what to do about weights in a format that runs code.
func (r *root) noWeights() error {
	for _, pattern := range []string{"*.bin", "*.bin.index.json", "*.pt", "*.pth", "*.ckpt"} {
		if found, _ := fs.Glob(os.DirFS(r.dir), pattern); len(found) > 0 {
			return fmt.Errorf("%s: pickled weights are not read, since reading them can run any code; "+
				"convert them with transformers: model.save_pretrained(dir, safe_serialization=True)", found[0])
		}
	}
	return fmt.Errorf("neither %s nor %s is there", weightsFile, indexFile)
}

// parseIndex lists the tensors that each shard must hold. Shards are plain file names next to the index.
func parseIndex(b []byte) (map[string][]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, err
	}
	files := map[string][]string{}
	for tensor, name := range index.WeightMap {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\:\x00") || name == "." {
			return nil, fmt.Errorf("weight_map: %q: %q is not a plain file name", tensor, name)
		}
		if !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("weight_map: %q: %q is not a safetensors file", tensor, name)
		}
		files[name] = append(files[name], tensor)
	}
	if len(files) == 0 {
		return nil, errors.New("weight_map names no shards")
	}
	return files, nil
}

// openFiles opens shards; files lists the tensors that each must hold.
func (r *root) openFiles(files map[string][]string) (*shards, error) {
	s := &shards{at: map[string]*safetensors.File{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := s.add(r, name, files[name]); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// add opens one shard and checks that its tensors are in no other, and that it has those listed in the index.
func (s *shards) add(r *root, name string, must []string) error {
	if err := r.isFile(name); err != nil {
		return err
	}
	f, err := safetensors.Open(filepath.Join(r.dir, name))
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	for _, tensor := range f.Names() {
		if s.at[tensor] != nil {
			return fmt.Errorf("%s: tensor %q is in another shard too", name, tensor)
		}
		s.at[tensor] = f
	}
	for _, tensor := range must {
		if s.at[tensor] != f {
			return fmt.Errorf("%s: tensor %q is not there, though %s says so", name, tensor, indexFile)
		}
	}
	return nil
}

func (s *shards) close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}

// DTypes is the number of weight bytes on disk by dtype.
func (f *Folder) DTypes() map[string]int64 {
	sum := map[string]int64{}
	for _, file := range f.shards.files {
		for _, t := range file.Infos() {
			sum[string(t.DType)] += t.End - t.Begin
		}
	}
	return sum
}

// check checks every tensor against the layout, and the layout against the tensors.
func (s *shards) check(l layout) error {
	known := map[string]bool{}
	for p := range l.parts() {
		for _, src := range p.pieces {
			if known[src.name] {
				continue
			}
			known[src.name] = true
			if err := s.checkSource(src.source); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.at)) {
		switch {
		case known[name] || strings.HasSuffix(name, ".rotary_emb.inv_freq"): // older files store the angles they derive
		case name == "lm_head.weight" && l.tied:
			if err := s.checkTied(l.names.root + "embed_tokens.weight"); err != nil {
				return err
			}
		default:
			return fmt.Errorf("tensor %q belongs to no part of this model", name)
		}
	}
	return nil
}

func (s *shards) checkSource(src source) error {
	f := s.at[src.name]
	if f == nil {
		return fmt.Errorf("tensor %q is missing", src.name)
	}
	info, _ := f.Info(src.name)
	if !slices.Equal(info.Shape, src.shape()) {
		return fmt.Errorf("tensor %q has shape %v, config.json implies %v", src.name, info.Shape, src.shape())
	}
	switch info.DType {
	case safetensors.F32, safetensors.F16, safetensors.BF16:
		return nil
	}
	return fmt.Errorf("tensor %q is %s, must be F32, F16 or BF16", src.name, info.DType)
}

// checkTied allows a stored output projection despite tie_word_embeddings if it equals the embedding.
func (s *shards) checkTied(embed string) error {
	const head = "lm_head.weight"
	a, err := s.at[head].Bytes(head)
	if err != nil {
		return err
	}
	b, err := s.at[embed].Bytes(embed)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("tensor %q differs from %q, though tie_word_embeddings = true", head, embed)
	}
	return nil
}

// assemble stacks a part's pieces.
func (s *shards) assemble(p part) ([]float32, error) {
	size := 0
	for _, q := range p.pieces {
		size += q.n * q.width()
	}
	x := make([]float32, 0, size)
	read := map[string][]float32{} // pieces of a source share one conversion
	for _, q := range p.pieces {
		if read[q.name] == nil {
			v, err := s.at[q.name].Float32s(q.name)
			if err != nil {
				return nil, err
			}
			read[q.name] = v
		}
		x = append(x, read[q.name][q.from*q.width():(q.from+q.n)*q.width()]...)
	}
	return x, nil
}
