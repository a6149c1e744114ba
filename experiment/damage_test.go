package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Rows with any field missing, of another type or out of range give an error or a document, and never a crash.
func TestDamagedFields(t *testing.T) {
	m := made{name: "small-text", size: "small", sides: three, better: []string{v1}, rates: 2, seeds: 2}
	b, err := Encode(m.rows())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	g := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	for range 100 {
		list := slices.Clone(lines)
		what := ""
		for range 1 + g.IntN(3) {
			at := g.IntN(len(list))
			var x map[string]any
			if json.Unmarshal(list[at], &x) != nil {
				continue
			}
			key := slices.Sorted(maps.Keys(x))[g.IntN(len(x))]
			value := []any{nil, 0, -1, 1e300, "", "x", []any{}, []any{1}, map[string]any{"a": 1},
				[][]float64{{1, 2}}}[g.IntN(10)]
			if x[key] = value; value == nil {
				delete(x, key)
			}
			list[at], _ = json.Marshal(x)
			what += fmt.Sprintf("line %d: %s = %v; ", at+1, key, value)
		}
		if err := os.WriteFile(path, bytes.Join(list, []byte("\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		survives(t, what, path)
	}
}

// survives renders a file of rows and fails where that panics.
func survives(t *testing.T, what, path string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v", what, p)
		}
	}()
	_ = Evidence(filepath.Dir(path), &bytes.Buffer{}) // an error is as good as a document
	if rows, err := ReadRowFiles(path); err == nil {
		_ = Summarize(rows).HTML(&bytes.Buffer{})
	}
}
