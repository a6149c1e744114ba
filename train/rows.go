package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// Rows returns the batches of a run, step by step, both past and future ones.
type Rows struct {
	Recipe    recipe.Recipe
	Tokenizer *tokenizer.Tokenizer
	B, T      int

	IDs, Targets, Starts []int32 // B×T, of the step last passed to At

	set   *data.Set
	split *data.Split
	rows  *data.Loader
	next  int // step whose batch rows returns next
}

// OpenRows opens a run folder for its data. dir needs a recipe or a checkpoint, and the token set in set (default
// dir/data, or the built set that the recipe names). With the split valid a step is one micro-batch of the held-out
// loss.
func OpenRows(dir, set, split string, warn func(string)) (*Rows, error) {
	r := &Rows{}
	hash, err := r.readRun(dir, warn)
	if err != nil {
		return nil, err
	}
	if set == "" {
		set = builtSet(r.Recipe)
	}
	if set == "" {
		set = filepath.Join(dir, "data")
	}
	if r.set, err = data.OpenSet(set, false); err != nil {
		return nil, err
	}
	if hash != "" && hash != r.set.Manifest.Hash {
		err = &data.CorruptError{File: set,
			Fault: fmt.Sprintf("not the token set of this run: its hash is %.12q, the run's %.12q",
				r.set.Manifest.Hash, hash)}
		return nil, errors.Join(err, r.Close())
	}
	if r.split, err = r.set.Split(split); err == nil && split == data.Train {
		r.split, err = trainSplit(r.set, r.Recipe)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.B, r.T = r.Recipe.Train.Batch, r.Recipe.Train.SeqLen
	if split == data.Valid {
		r.B = r.Recipe.Train.MicroBatch
	}
	n := r.B * r.T
	r.IDs, r.Targets, r.Starts = make([]int32, n), make([]int32, n), make([]int32, n)
	r.begin()
	return r, nil
}

// readRun reads recipe and tokenizer from the newest checkpoint, or from the folder if there is none yet. hash
// identifies the data that the checkpoint was trained on.
func (r *Rows) readRun(dir string, warn func(string)) (hash string, err error) {
	if IsRun(dir) {
		s, err := Open(dir, warn)
		if err == nil {
			r.Recipe, r.Tokenizer = s.Recipe, s.Tokenizer
			return s.State.Data.Dataset, s.Close() // the weights are not needed
		}
		if _, e := os.Stat(filepath.Join(dir, "recipe.json")); e != nil {
			return "", err
		}
	}
	if err := r.Recipe.Read(filepath.Join(dir, "recipe.json")); err != nil {
		return "", err
	}
	path := r.Recipe.Tokenizer.Path
	if path == "" {
		path = filepath.Join(dir, "tokenizer.json")
	}
	r.Tokenizer, err = loadTokenizer(vfs.OS{}, path)
	if errors.Is(err, fs.ErrNotExist) {
		r.Tokenizer, err = nil, nil // ids can be shown without it
	}
	return "", err
}

func (r *Rows) begin() {
	seed := r.Recipe.Train.Seed
	if r.split.Name() == data.Valid {
		seed = 0
	}
	r.rows, r.next = loader(r.split, r.Recipe, r.B, seed), 1
}

// Steps is the run's last step; for the held-out split, the last micro-batch.
func (r *Rows) Steps() int {
	if r.split.Name() == data.Valid {
		return r.Recipe.Train.EvalBatches
	}
	return r.Recipe.Train.Steps
}

// At fills IDs, Targets and Starts with the batch of step n ≥ 1.
func (r *Rows) At(n int) error {
	if n < r.next {
		r.begin()
	}
	r.rows.Skip(uint64(n-r.next) * uint64(r.B))
	if r.rows.Left() < uint64(r.B) {
		r.begin() // the next call counts from the first row again
		return fmt.Errorf("train: step %d: the sources' epochs end before it", n)
	}
	r.rows.Next(r.IDs, r.Targets, r.Starts)
	r.next = n + 1
	return nil
}

// Close unmaps the token set.
func (r *Rows) Close() error { return r.set.Close() }
