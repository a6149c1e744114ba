package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"antiphase/layer"
)

// Read takes a recipe file, JSON or YAML. Fields that the file omits keep their value in r, so a file may state a whole
// run or only the differences to a named recipe. Unknown keys are rejected with their line and the nearest known key.
func (r *Recipe) Read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // a device file has no end
	if err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	if err := r.Parse(b); err != nil {
		return fmt.Errorf("recipe: %s:%w", path, err)
	}
	return nil
}

// Limits of a recipe file: the parser's memory grows with the square of the nesting depth.
const (
	maxFile    = 1 << 20
	maxNesting = 32
	maxQuotes  = 2000 // per line
)

// shallow rejects files that are too large or nested deeper than any recipe, before they reach the parser.
func shallow(b []byte) error {
	if len(b) > maxFile {
		return fmt.Errorf("1: the file is larger than %d bytes", maxFile)
	}
	line, depth := 0, 0
	for text := range bytes.Lines(b) {
		line++
		marks := 0 // list markers on one line: "- - - x"
		for _, f := range bytes.Fields(text) {
			if s := string(f); s != "-" && s != "?" && s != ":" {
				break
			}
			marks++
		}
		if bytes.Count(text, []byte(`"`))+bytes.Count(text, []byte("'")) > maxQuotes {
			return fmt.Errorf("%d: more than %d quotation marks in a line", line, maxQuotes)
		}
		for _, c := range text {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			}
			if depth+marks > maxNesting {
				return fmt.Errorf("%d: nested deeper than %d", line, maxNesting)
			}
		}
		if indent := len(text) - len(bytes.TrimLeft(text, " ")); indent > 8*maxNesting &&
			len(bytes.TrimSpace(text)) > 0 {
			return fmt.Errorf("%d: indented deeper than %d", line, 8*maxNesting)
		}
	}
	return nil
}

// Parse is Read from memory; errors begin with the line.
func (r *Recipe) Parse(b []byte) error {
	if err := shallow(b); err != nil {
		return err
	}
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		return errors.New(" " + yaml.FormatError(err, false, false))
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

// date gives a whole recipe, as stored in a run folder, the meaning it had when it was written: keys added later get
// the value that was then fixed.
func (r *Recipe) date(stated map[string]bool) {
	for _, key := range []string{"data.sources", "data.held_out", "data.max_tokens", "data.isolate", "train.keep_last",
		"train.strict_save"} {
		if !stated[key] {
			return // it states only differences to a named recipe
		}
	}
	if !stated["data.order"] {
		r.Data.Order = "stream"
	}
	if !stated["train.recompute"] {
		r.Train.Recompute = layer.RecomputeOff
	}
	if !stated["data.held_out_by"] {
		r.Data.HeldOutBy = "documents"
	}
}

// walk sets every leaf of a mapping by its dotted path and records it in stated. rope_scaling is a leaf: it is one
// value, present or not.
func (r *Recipe) walk(n ast.Node, prefix string, stated map[string]bool) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return fmt.Errorf("%d: want keys and values here", n.GetToken().Position.Line)
	}
	for it := m.MapRange(); it.Next(); {
		path := prefix + strings.Trim(it.Key().String(), `"'`)
		v := it.Value()
		line := it.Key().GetToken().Position.Line
		if !known(path) {
			return fmt.Errorf("%d: %w", line, r.Set(path, ""))
		}
		_, isKey := byPath[path]
		if _, nested := v.(ast.MapNode); nested && !isKey {
			if err := r.walk(v, path+".", stated); err != nil {
				return err
			}
			continue
		}
		stated[path] = true
		s, err := leaf(v)
		switch {
		case err != nil:
		case !isKey: // a whole section without a value
			err = fmt.Errorf("%s: want keys and values here", path)
		case v.Type() == ast.NullType && (path == "model.rope_scaling" || path == "data.sources"):
			continue // JSON's way of writing that there is none
		case v.Type() == ast.NullType:
			err = fmt.Errorf("%s: has no value; leave the key out to keep %s", path, show(byPath[path].of(r).v))
		default:
			err = r.Set(path, s)
		}
		if err != nil {
			return fmt.Errorf("%d: %w", line, err)
		}
	}
	return nil
}

// leaf renders a value as Set expects it: scalars as text, lists and objects as JSON.
func leaf(v ast.Node) (string, error) {
	switch x := v.(type) {
	case *ast.StringNode:
		return x.Value, nil
	case ast.ScalarNode:
		return x.GetToken().Value, nil
	}
	if refers(v) {
		return "", errors.New("anchors, aliases and tags are not read; write the value out")
	}
	var any any
	if err := yaml.NodeToValue(v, &any); err != nil {
		return "", err
	}
	b, err := json.Marshal(any)
	return string(b), err
}

// refers reports whether a value contains an alias or merge, which can expand a short text into a long value.
func refers(v ast.Node) bool {
	found := false
	ast.Walk(visitor(func(n ast.Node) {
		switch n.(type) {
		case *ast.AliasNode, *ast.AnchorNode, *ast.TagNode, *ast.MergeKeyNode:
			found = true
		}
	}), v)
	return found
}

type visitor func(ast.Node)

// Visit implements ast.Visitor.
func (f visitor) Visit(n ast.Node) ast.Visitor {
	f(n)
	return f
}

// JSON is the recipe as stored in a run folder.
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
