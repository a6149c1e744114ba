package harness

import (
	"errors"
	"fmt"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"antiphase/internal/vfs"
)

const maxFile = 1 << 20 // bytes of a task file

// parseFile reads a file of one YAML mapping.
func parseFile(path string) (o *object, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser panics on some malformed files
			err = fmt.Errorf("malformed YAML: %v", p)
		}
	}()
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a plain file")
	}
	if st.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes; a task file has at most %d", st.Size(), maxFile)
	}
	b, err := vfs.ReadFile(vfs.OS{}, path, maxFile) // it may have grown
	if err != nil {
		return nil, err
	}
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, errors.New(yaml.FormatError(err, false, false)) // without the surrounding lines
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, errors.New("want one YAML mapping")
	}
	r := &reading{anchors: map[string]any{}, sizes: map[string]int{}}
	v, err := r.value(f.Docs[0].Body, 0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, errors.New("want one YAML mapping")
	}
	return o, nil
}

// reading turns YAML's syntax tree into values.
type reading struct {
	anchors map[string]any
	sizes   map[string]int // values inside each anchor, with aliases expanded
	n       int            // values so far, with aliases expanded
}

const (
	maxDepth  = 50
	maxValues = 1 << 20 // nested aliases can expand to more values than fit in memory
)

func (r *reading) value(n ast.Node, depth int) (any, error) {
	if r.n++; depth > maxDepth || r.n > maxValues {
		return nil, fmt.Errorf("nested deeper than %d, or more than %d values", maxDepth, maxValues)
	}
	switch n := n.(type) {
	case *ast.TagNode:
		v, err := r.value(n.Value, depth+1)
		if err != nil || n.Start.Value != "!function" {
			return v, err
		}
		return function(fmt.Sprint(v)), nil
	case *ast.MappingNode:
		return r.mapping(n.Values, depth)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		list := []any{}
		for _, x := range n.Values {
			v, err := r.value(x, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	case *ast.AnchorNode:
		before := r.n
		v, err := r.value(n.Value, depth+1)
		r.anchors[n.Name.String()], r.sizes[n.Name.String()] = v, r.n-before
		return v, err
	case *ast.AliasNode:
		v, ok := r.anchors[n.Value.String()]
		if !ok {
			return nil, fmt.Errorf("alias *%s names no anchor", n.Value)
		}
		if r.n += r.sizes[n.Value.String()]; r.n > maxValues {
			return nil, fmt.Errorf("more than %d values, aliases written out", maxValues)
		}
		return v, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.StringNode:
		if v, ok := yamlOneBool[n.Value]; ok && n.Token.Type == token.StringType {
			return v, nil
		}
		return n.Value, nil
	case *ast.NullNode:
		return nil, nil
	}
	var v any
	err := yaml.NodeToValue(n, &v)
	return number(v), err
}

// yamlOneBool are boolean values of YAML 1.1, which the harness's parser accepts.
var yamlOneBool = map[string]bool{"yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false}

// number makes integers of all widths ints.
func number(v any) any {
	switch v := v.(type) {
	case uint64:
		return int(v)
	case int64:
		return int(v)
	}
	return v
}

func (r *reading) mapping(values []*ast.MappingValueNode, depth int) (any, error) {
	own, merged := newObject(), newObject()
	for _, x := range values {
		v, err := r.value(x.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, merge := x.Key.(*ast.MergeKeyNode); merge {
			if err := merged.merge(v); err != nil {
				return nil, err
			}
			continue
		}
		key, err := r.value(x.Key, depth+1)
		if err != nil {
			return nil, err
		}
		own.set(fmt.Sprint(key), v)
	}
	for _, key := range own.keys {
		merged.set(key, own.at[key])
	}
	return merged, nil
}

// merge adds the keys of "<<", a mapping or a list of them; of two with a key the first counts. A mapping's own keys
// override merged ones, wherever "<<" stands.
func (o *object) merge(v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, x := range list {
		from, ok := x.(*object)
		if !ok {
			return fmt.Errorf("<<: %v is not a mapping", x)
		}
		for _, key := range from.keys {
			if _, there := o.at[key]; !there {
				o.set(key, from.at[key])
			}
		}
	}
	return nil
}
