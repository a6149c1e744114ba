package recipe

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Read takes a recipe file, JSON or YAML. What the file leaves out keeps the value it has in r, so a file may state a
// whole run or only what differs from a named recipe. Unknown keys are refused with their line and the nearest known.
func (r *Recipe) Read(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	if err := r.Parse(b); err != nil {
		return fmt.Errorf("recipe: %s:%w", path, err)
	}
	return nil
}

// Parse is Read from memory; errors begin with the line.
func (r *Recipe) Parse(b []byte) error {
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		return fmt.Errorf(" %w", err)
	}
	stated := map[string]bool{}
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		if err := r.walk(d.Body, "", stated); err != nil {
			return err
		}
	}
	r.date(stated)
	return nil
}

// date gives a whole recipe, as a run folder has it, the meaning that it had when it was written: keys that came later had no other value.
func (r *Recipe) date(stated map[string]bool) {
	for _, key := range []string{"data.sources", "data.held_out", "data.max_tokens", "data.isolate", "train.keep_last", "train.strict_save"} {
		if !stated[key] {
			return // it states what differs from a named recipe
		}
	}
	if !stated["data.order"] {
		r.Data.Order = "stream"
	}
	if !stated["data.held_out_by"] {
		r.Data.HeldOutBy = "documents"
	}
}

// walk sets every leaf of a mapping by its dotted path, and notes it in stated. rope_scaling is a leaf: it is one value, present or not.
func (r *Recipe) walk(n ast.Node, prefix string, stated map[string]bool) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return fmt.Errorf("%d: want keys and values here", n.GetToken().Position.Line)
	}
	for it := m.MapRange(); it.Next(); {
		path := prefix + strings.Trim(it.Key().String(), `"'`)
		v := it.Value()
		line := it.Key().GetToken().Position.Line
		if _, nested := v.(ast.MapNode); nested && !r.isLeaf(path) {
			if err := r.walk(v, path+".", stated); err != nil {
				return err
			}
			continue
		}
		stated[path] = true
		s, err := leaf(v)
		if err == nil && s == "null" {
			continue
		}
		if err == nil {
			err = r.Set(path, s)
		}
		if err != nil {
			return fmt.Errorf("%d: %w", line, err)
		}
	}
	return nil
}

func (r *Recipe) isLeaf(path string) bool {
	for _, f := range r.Fields() {
		if f.Path == path {
			return true
		}
	}
	return false
}

// leaf renders a value as Set wants it: scalars as text, lists and objects as JSON.
func leaf(v ast.Node) (string, error) {
	switch x := v.(type) {
	case *ast.StringNode:
		return x.Value, nil
	case ast.ScalarNode:
		return x.GetToken().Value, nil
	}
	var any any
	if err := yaml.NodeToValue(v, &any); err != nil {
		return "", err
	}
	b, err := json.Marshal(any)
	return string(b), err
}

// JSON is the recipe as it is written into a run folder.
func (r Recipe) JSON() []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic(err) // only numbers, strings and lists: a non-finite number is refused by Complete
	}
	return append(b, '\n')
}

// Change is one key in which two recipes differ.
type Change struct{ Path, Old, New string }

// Diff lists the keys in which b differs from a.
func Diff(a, b Recipe) []Change {
	fa, fb := a.Fields(), b.Fields()
	var out []Change
	for i := range fa {
		if fa[i].Value != fb[i].Value {
			out = append(out, Change{fa[i].Path, fa[i].Value, fb[i].Value})
		}
	}
	return out
}
