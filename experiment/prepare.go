package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/recipe"
	"antiphase/tokenizer"
	"antiphase/train"
)

// ErrOther means that a folder holds another experiment, or something else, or that rows are of another.
var ErrOther = errors.New("not the folder of this experiment")

const (
	specName   = "experiment.json"
	rowsName   = "rows.jsonl"
	csvName    = "rows.csv"
	reportName = "report.html"

	tokenizerName = "tokenizer.json"
)

// maxSpec is a bound on the bytes of a spec and of the record of times, which have a few thousand.
const maxSpec = 16 << 20

// admit reports whether dir may be the folder of the experiment: it is empty, or holds this one, or one that stopped
// before it had a token set. It changes nothing.
func admit(dir string, s *Spec) error {
	path := filepath.Join(dir, specName)
	b, err := vfs.ReadFile(vfs.OS{}, path, maxSpec)
	if errors.Is(err, fs.ErrNotExist) {
		return empty(dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	old, err := parseSpec(b)
	if err != nil {
		return &data.CorruptError{File: path, Fault: err.Error()}
	}
	if !vfs.Exists(vfs.OS{}, filepath.Join(dir, "runs")) {
		if !data.IsSet(setOf(dir)) {
			return nil
		}
		old.adopt(s)
	}
	if diff := s.continues(old); diff != "" {
		return fmt.Errorf("%s is %w: it differs in %s; use the settings it was begun with, or another --dir", dir,
			ErrOther, diff)
	}
	return nil
}

// Vacant is nil for a folder that has an experiment, or in which one can begin.
func Vacant(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, specName)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := empty(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// adopt replaces all settings that the token set does not depend on by those of now: before its first run an experiment
// may still change.
func (s *Spec) adopt(now *Spec) {
	was := *s
	*s = *now
	s.Name, s.Data, s.Tokenizer, s.Vocab, s.Steps, s.Set = was.Name, was.Data, was.Tokenizer, was.Vocab,
		was.Steps, was.Set
	if was.Sizes[0] != now.Sizes[0] || was.Archs[0] != now.Archs[0] { // their recipe makes the set
		s.Sizes, s.Archs = was.Sizes, was.Archs
	}
}

// renew replaces the spec in a folder that admit has accepted. A tokenizer that was trained for other text, or in
// another way, and has no token set goes with the old one.
func renew(dir string, s *Spec) error {
	if old, err := ReadSpec(dir); err == nil && !data.IsSet(setOf(dir)) {
		if old.adopt(s); s.continues(old) != "" {
			if err := vfs.RemoveAll(vfs.OS{}, filepath.Join(dir, tokenizerName)); err != nil {
				return err
			}
		}
	}
	return writeSpec(filepath.Join(dir, specName), s)
}

func parseSpec(b []byte) (*Spec, error) {
	var s Spec
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("is empty")
	case err != nil:
		return nil, err
	case d.More():
		return nil, errors.New("has text after its object")
	case s.Format != specFormat:
		return nil, fmt.Errorf("format %d, this program reads %d", s.Format, specFormat)
	case len(s.Sizes) == 0 || len(s.Archs) == 0:
		return nil, errors.New("names no sizes or no architectures")
	}
	return &s, nil
}

// Is reports whether a folder is that of an experiment.
func Is(dir string) bool { return vfs.Exists(vfs.OS{}, filepath.Join(dir, specName)) }

// ReadSpec reads the experiment that a folder holds.
func ReadSpec(dir string) (*Spec, error) {
	b, err := vfs.ReadFile(vfs.OS{}, filepath.Join(dir, specName), maxSpec)
	if err != nil {
		return nil, err
	}
	return parseSpec(b)
}

func writeSpec(path string, s *Spec) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return vfs.WriteFile(vfs.OS{}, path, append(b, '\n'))
}

// empty rejects a folder that holds anything but a lock and remains of a spec from a killed process.
func empty(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if tmp, _ := filepath.Match(specName+".tmp-*", e.Name()); !tmp && e.Name() != "LOCK" {
			return fmt.Errorf("%s is %w: it has no %s and is not empty (%s); use another --dir", dir, ErrOther,
				specName, e.Name())
		}
	}
	return nil
}

// Files are what an experiment writes to its folder besides its spec and the folder of its runs.
func Files() []string {
	return []string{rowsName, csvName, reportName, timeName, tokenizerName, "data"}
}

// sweep deletes partial files of killed processes. The caller holds the folder's lock.
func sweep(dir string) {
	for _, name := range append(Files(), specName, "runs/*/"+rowsName) {
		found, _ := filepath.Glob(filepath.Join(dir, name+".tmp-*")) // the patterns are well formed
		for _, path := range found {
			_ = os.RemoveAll(path)
		}
	}
}

// prepare makes the token set that all runs read, including its tokenizer. An existing one is used as it is: sources
// may be gone.
func prepare(ctx context.Context, dir string, r recipe.Recipe, opt *train.Options) error {
	set := setOf(dir)
	if !data.IsSet(set) {
		tok, err := makeTokenizer(ctx, dir, r, opt)
		if err != nil {
			return err
		}
		if tok.Vocab() > r.Model.Vocab {
			return fmt.Errorf("the tokenizer has %d ids, model.vocab is %d: --set model.vocab=%d", tok.Vocab(),
				r.Model.Vocab, (tok.Vocab()+63)/64*64)
		}
		if err := train.MakeSet(ctx, r, set, tok, opt); err != nil {
			return err
		}
	}
	return nil
}

// makeTokenizer uses the recipe's, or the one that an earlier call trained for this folder, or trains it.
func makeTokenizer(ctx context.Context, dir string, r recipe.Recipe, opt *train.Options) (*tokenizer.Tokenizer, error) {
	if r.Tokenizer.Path != "" {
		return openTokenizer(r.Tokenizer.Path)
	}
	path := filepath.Join(dir, tokenizerName)
	if _, err := os.Stat(path); err == nil {
		return tokenizer.Load(path)
	}
	tok, err := train.MakeTokenizer(ctx, r, opt)
	if err != nil {
		return nil, err
	}
	return tok, tok.Save(path)
}

func openTokenizer(path string) (*tokenizer.Tokenizer, error) {
	if path == "bytes" {
		return tokenizer.Bytes(), nil
	}
	return tokenizer.Load(path)
}

// Fed rejects sources that cannot be read, or are too small for a batch, before any work. A folder that has its token
// set needs none.
func (s *Spec) Fed(ctx context.Context, dir string) error {
	if data.IsSet(setOf(dir)) {
		return nil
	}
	runs, err := s.Grid(nil)
	if err != nil {
		return err
	}
	return enough(ctx, runs[0].Recipe)
}

// setOf is the token set of an experiment's folder.
func setOf(dir string) string { return filepath.Join(dir, "data") }

// enough rejects sources whose whole text cannot fill one batch: no token is shorter than a byte.
func enough(ctx context.Context, r recipe.Recipe) error {
	src, err := train.Sources(r)
	if err != nil {
		return err
	}
	need := int64(r.Train.Batch * r.Train.SeqLen)
	total := int64(0)
	for _, s := range src {
		e, err := data.EstimateText(ctx, s, 2*need)
		if err != nil {
			return err
		}
		if row := int64(r.Train.SeqLen); r.Data.Mixed() && e.Bytes < row {
			return &data.SourceError{Source: s.Name(),
				Fault: fmt.Sprintf("has %d bytes of text, one row takes %d tokens (train.seq_len): give more text, or "+
					"shorter rows", e.Bytes, row)}
		}
		total += e.Bytes
	}
	if total >= need {
		return nil
	}
	return &data.SourceError{Source: src[0].Name(),
		Fault: fmt.Sprintf("has %d bytes of text in all, one batch takes %d tokens (train.batch × train.seq_len): "+
			"give more text, or smaller batches", total, need)}
}

// setHash identifies the text and the tokenizer of a token set.
func setHash(set string) (string, error) {
	m, err := data.ReadManifest(set)
	if err != nil {
		return "", err
	}
	return m.Hash[:min(16, len(m.Hash))], nil
}

// fills is enough once the tokens are counted.
func fills(set string, runs []Run) error {
	m, err := data.ReadManifest(set)
	if err != nil {
		return err
	}
	return filled(m, runs)
}

// filled is fills of a manifest.
func filled(m *data.Manifest, runs []Run) error {
	have := m.Tokens
	held := int64(0)
	for _, s := range m.Sources {
		held += s.HeldOut
	}
	if have -= held; held == 0 {
		return &data.SourceError{Source: m.Sources[0].Name,
			Fault: "is too little text to hold any of it out, and runs are compared on held-out text: give more, or " +
				"a larger share (--set data.held_out=0.2)"}
	}
	for _, r := range runs {
		if need := int64(r.Recipe.Train.Batch * r.Recipe.Train.SeqLen); have < need {
			return &data.SourceError{Source: m.Sources[0].Name,
				Fault: fmt.Sprintf("has %d tokens to train on, one batch of %s takes %d: give more text, or "+
					"smaller batches", have, r.Size, need)}
		}
	}
	return nil
}
