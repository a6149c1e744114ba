package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// source locates a task's documents.
type source struct {
	path, name string              // dataset_path and dataset_name
	files      map[string][]string // of each split, if the task file names them
	dir, root  string              // of the task file, and of all task files
}

// readSource reads dataset_path, dataset_name and dataset_kwargs.
func readSource(k *keys, dir, root string) source {
	s := source{path: k.text("dataset_path", ""), name: k.text("dataset_name", ""), dir: dir, root: root}
	if s.path == "" {
		k.fail("dataset_path is missing; want json or parquet with data_files, or the name of a data set below --data")
	}
	kwargs, ok := k.at["dataset_kwargs"].(*object)
	if !ok {
		return s
	}
	for _, key := range kwargs.keys {
		switch v := kwargs.at[key].(type) {
		case *object:
			if key == "data_files" {
				s.files = map[string][]string{}
				for _, split := range v.keys {
					s.files[split] = texts(v.at[split])
				}
				continue
			}
			k.fail("dataset_kwargs: key %q is not supported", key)
		default:
			if list := texts(v); key == "data_files" && len(list) > 0 {
				s.files = map[string][]string{"train": list} // as in the harness's loader
				continue
			}
			if key != "trust_remote_code" {
				k.fail("dataset_kwargs: key %q is not supported", key)
			}
		}
	}
	return s
}

// endings are the extensions of document files.
var endings = []string{".jsonl.zst", ".jsonl.gz", ".jsonl", ".json", ".parquet"}

// paths are the files of a split: those that the task file names, relative to itself, or those below --data under the
// data set's name.
func (s *source) paths(p *eval.Plan, split string) ([]string, error) {
	if s.files != nil {
		var out []string
		for _, name := range s.files[split] {
			found, err := s.glob(p, name)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("data_files has no split %q; it has %s", split,
				strings.Join(sortedKeys(s.files), ", "))
		}
		return out, nil
	}
	for _, name := range []string{s.path, filepath.Join(s.path, s.name), split} {
		if name != "" && !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("data set %s, split %q: %s leads out of --data", s.path, split, name)
		}
	}
	if p.Data == "" {
		return nil, fmt.Errorf("data set %s: nothing is fetched; give its files with data_files, or below --data as %s",
			s.path, s.example(split))
	}
	var looked []string
	for _, dir := range []string{filepath.Join(s.path, s.name), s.path, filepath.Join(filepath.Base(s.path), s.name),
		filepath.Base(s.path)} {
		dir = filepath.Join(p.Data, filepath.FromSlash(dir))
		for _, ending := range endings {
			for _, pattern := range []string{split + ending, split + "-*" + ending} {
				found, err := filepath.Glob(filepath.Join(dir, pattern))
				if err != nil {
					return nil, err
				}
				if len(found) > 0 {
					slices.Sort(found)
					return found, nil
				}
			}
		}
		looked = append(looked, dir)
	}
	return nil, fmt.Errorf("data set %s: no file of split %q in %s; want %s", s.path, split,
		strings.Join(slices.Compact(looked), ", "), s.example(split))
}

// example is the path where a split would be looked for.
func (s *source) example(split string) string {
	return filepath.ToSlash(filepath.Join("DATA", s.path, s.name, split+".jsonl")) +
		" (also .json, .jsonl.gz, .jsonl.zst, .parquet)"
}

// glob finds a file, or the files of a pattern, relative to the task file. An absolute path may also be below --data.
func (s *source) glob(p *eval.Plan, name string) ([]string, error) {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.dir, path)
	}
	found := []string{path}
	if _, err := os.Stat(path); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if found, err = filepath.Glob(path); err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	for _, f := range found {
		err := within(s.root, f)
		if err != nil && (p.Data == "" || within(p.Data, f) != nil) {
			return nil, fmt.Errorf("data_files: %w", err)
		}
		if st, err := os.Stat(f); err != nil || !st.Mode().IsRegular() {
			return nil, fmt.Errorf("data_files: %s is not a plain file", f)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("data_files: %s: %w", name, fs.ErrNotExist)
	}
	return found, nil
}

var errEnough = errors.New("enough")

// load reads a split; limit 0 reads all of it. process_docs has been applied.
func (s *spec) load(ctx context.Context, p *eval.Plan, split string, limit int) ([]map[string]any, error) {
	paths, err := s.data.paths(p, split)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, path := range paths {
		if err := p.Uses(ctx, path); err != nil {
			return nil, err
		}
		err := data.Rows(path, func(n int, doc map[string]any) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.process != nil {
				if err := s.process.apply(doc); err != nil {
					return fmt.Errorf("row %d: %w", n, err)
				}
			}
			if out = append(out, doc); len(out) == limit {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("split %q has no documents in %s", split, strings.Join(paths, ", "))
	}
	return out, nil
}
