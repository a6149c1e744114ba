package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Open makes a source from a spec:
//
//	FILE              .txt, .md, .jsonl (field "text"), each also .gz or .zst; .parquet (column "text")
//	FOLDER            every such file below it, in sorted order, links followed; none whose name begins with a dot
//	GLOB              every such file it matches, in sorted order
//	synthetic[:OPTS]  generated documents, see [Synthetic]; for a file of that name write ./synthetic
//	goroot            the .go and .md files of the Go toolchain's source tree
//
// Open reads the beginning of files and rejects binary, malformed or empty ones. Errors are a [CorruptError] of a file
// or a [SourceError] of the spec.
func Open(spec string) (Source, error) {
	s, err := openSpec(spec)
	if f, ok := s.(*files); ok && err == nil {
		err = f.probe()
	}
	if err == nil {
		return s, nil
	}
	if _, known := errors.AsType[*CorruptError](err); known {
		return nil, err
	}
	return nil, &SourceError{Source: strconv.Quote(spec), Fault: strings.TrimPrefix(err.Error(), "data: open: "),
		err: err}
}

func openSpec(spec string) (Source, error) {
	kind, opts, _ := strings.Cut(spec, ":")
	switch {
	case spec == "":
		return nil, errors.New(`empty spec; want a file, a folder, a glob, "synthetic" or "goroot"`)
	case kind == "synthetic":
		return parseSynthetic(opts)
	case spec == "goroot":
		return openGoroot()
	}
	st, err := os.Stat(spec)
	switch {
	case err == nil && st.IsDir() && IsSet(spec):
		return nil, errors.New("is a built token set, which must be the only source")
	case err == nil && st.IsDir():
		return openFolder(spec, spec, readers)
	case err == nil:
		if readerOf(spec, readers) == nil {
			return nil, fmt.Errorf("unknown kind of file; want one that ends with %s", endings(readers))
		}
		return &files{name: spec, root: filepath.Dir(spec), paths: []string{filepath.Base(spec)}, readers: readers}, nil
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(spec, "*?["):
		return openGlob(spec)
	}
	return nil, fmt.Errorf(`%w; want a file that ends with %s, a folder or glob of such, "synthetic" or "goroot"`, err,
		endings(readers))
}

// openFolder collects the files below dir that have a reader, outside the folders named in skip.
func openFolder(name, dir string, rs []reader, skip ...string) (Source, error) {
	src := &files{name: name, root: dir, readers: rs}
	if err := src.collect("", skip, map[string]bool{}); err != nil {
		return nil, err
	}
	if len(src.paths) == 0 {
		return nil, fmt.Errorf("folder %s holds no file that ends with %s", dir, endings(rs))
	}
	slices.Sort(src.paths)
	return src, nil
}

// collect adds the files of a folder below root. It follows links and enters each folder once, because a link may lead
// back to one: entered holds their paths without links.
func (s *files) collect(folder string, skip []string, entered map[string]bool) error {
	dir := filepath.Join(s.root, folder)
	real, err := unlinked(dir)
	if err != nil || entered[real] {
		return err
	}
	entered[real] = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, mode := filepath.Join(folder, e.Name()), e.Type()
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if mode&fs.ModeSymlink != 0 {
			st, err := os.Stat(filepath.Join(s.root, name))
			switch {
			case err == nil:
				mode = st.Mode()
			case readerOf(name, s.readers) != nil:
				return err
			}
		}
		switch {
		case mode.IsDir() && !slices.Contains(skip, e.Name()):
			if err := s.collect(name, skip, entered); err != nil {
				return err
			}
		case mode.IsRegular() && readerOf(name, s.readers) != nil:
			s.paths = append(s.paths, name)
		}
	}
	return nil
}

// unlinked is the one path without links of a file or folder.
func unlinked(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

func openGlob(spec string) (Source, error) {
	matches, err := filepath.Glob(spec)
	if err != nil {
		return nil, fmt.Errorf("glob %s: %w", spec, err)
	}
	src := &files{name: spec, readers: readers}
	for _, path := range matches {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if st.Mode().IsRegular() && readerOf(path, readers) != nil {
			src.paths = append(src.paths, path)
		}
	}
	if len(src.paths) == 0 {
		return nil, fmt.Errorf("glob %s matches no file that ends with %s (it matches %d other names)", spec,
			endings(readers), len(matches))
	}
	slices.Sort(src.paths)
	return src, nil
}
