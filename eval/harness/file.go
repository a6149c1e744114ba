package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// object is a mapping with ordered keys.
type object struct {
	keys []string
	at   map[string]any
}

func newObject() *object { return &object{at: map[string]any{}} }

func (o *object) set(key string, v any) {
	if _, ok := o.at[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.at[key] = v
}

// function is a value tagged !function: module.name of a Python file next to the task file.
type function string

// config is what a file states about one task, with includes resolved.
type config struct {
	*object
	path  string
	root  string // folder that the file may read from
	group string
	files []string // read for it
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// readFiles finds the tasks of a file, or of all files below a folder.
func readFiles(path string) ([]config, error) {
	var paths []string
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (name == path || strings.HasSuffix(name, ".yaml") ||
			strings.HasSuffix(name, ".yml")) {
			paths = append(paths, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	root := path
	if st, err := os.Stat(path); err == nil && !st.IsDir() {
		root = filepath.Dir(path)
	}
	var tasks, groups []config
	for _, name := range paths {
		c, err := readFile(root, name, nil)
		if err != nil {
			return nil, err
		}
		switch c.at["task"].(type) {
		case nil: // a part for others to include
		case string:
			tasks = append(tasks, *c)
		default:
			groups = append(groups, *c)
		}
	}
	for _, g := range groups {
		if tasks, err = addGroup(tasks, g, g.object); err != nil {
			return nil, fmt.Errorf("%s: %w", g.path, err)
		}
	}
	return tasks, nil
}

var groupKeys = []string{"group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag"}

// addGroup puts tasks into a group: those named, and those defined in the group's own list.
func addGroup(tasks []config, from config, g *object) ([]config, error) {
	name, ok := g.at["group"].(string)
	list, isList := g.at["task"].([]any)
	if !ok || !isList {
		return nil, errors.New(`"task" is a list; want "group" with its name beside it`)
	}
	for _, key := range g.keys {
		if !slices.Contains(groupKeys, key) {
			return nil, fmt.Errorf("key %q of a group is not known", key)
		}
	}
	for _, entry := range list {
		if o, ok := entry.(*object); ok && o.at["group"] != nil {
			var err error
			if tasks, err = addGroup(tasks, from, o); err != nil {
				return nil, err
			}
			continue
		}
		inline, written := entry.(*object)
		member, ok := entry.(string)
		if written {
			member, ok = inline.at["task"].(string)
		}
		if !ok {
			return nil, fmt.Errorf("group %s: an entry is neither a task's name nor a task", name)
		}
		i := slices.IndexFunc(tasks, func(c config) bool { return c.at["task"] == member })
		switch {
		case i >= 0:
			tasks[i].group = name
			for _, key := range keysOf(inline) {
				tasks[i].set(key, inline.at[key])
			}
		case written && inline.at["output_type"] != nil:
			tasks = append(tasks, config{object: inline, path: from.path, root: from.root, group: name,
				files: from.files})
		default:
			return nil, fmt.Errorf("group %s: the task %s is in none of the files", name, member)
		}
	}
	return tasks, nil
}

func keysOf(o *object) []string {
	if o == nil {
		return nil
	}
	return o.keys
}

// readFile reads a file below root and its includes; its own keys override.
func readFile(root, path string, seen []string) (*config, error) {
	if err := within(root, path); err != nil {
		return nil, err
	}
	clean, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if slices.Contains(seen, clean) {
		return nil, fmt.Errorf("%s: it includes itself", path)
	}
	seen = append(seen, clean)
	own, err := parseFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := &config{object: newObject(), path: path, root: root, files: []string{path}}
	for _, name := range texts(own.at["include"]) {
		at := filepath.FromSlash(name)
		if !filepath.IsAbs(at) {
			at = filepath.Join(filepath.Dir(path), at)
		}
		inner, err := readFile(root, at, seen)
		if err != nil {
			return nil, fmt.Errorf("%s: include: %w", path, err)
		}
		out.files = append(out.files, inner.files...)
		for _, key := range inner.keys {
			out.set(key, inner.at[key])
		}
	}
	for _, key := range own.keys {
		if key != "include" {
			out.set(key, own.at[key])
		}
	}
	return out, nil
}

// within rejects a path that leads out of a folder, by its name or through links. A folder of tasks may come from
// someone else: it may name its own files and no others of this machine.
func within(root, path string) error {
	inside := func(root, path string) (bool, error) {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel), err
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	ok, err := inside(root, path)
	if ok { // links count only for existing paths
		if root, err = filepath.EvalSymlinks(root); err != nil {
			return err
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
		ok, err = inside(root, path)
	}
	if !ok || err != nil {
		return fmt.Errorf("%s is outside of %s, the folder of --task-files; put it there, or below --data", path, root)
	}
	return nil
}

// texts is one text or a list of them.
func texts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, x := range v {
			if s, ok := x.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// hashFiles hashes the contents of files.
func hashFiles(paths []string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		b, err := vfs.ReadFile(vfs.OS{}, path, maxFile)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d ", len(b))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
