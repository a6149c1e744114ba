package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant is one of the bugs; see tools/mutate.
type plant struct {
	Name, File, Old, New string
	Tests                []string
}

// lostPlants names the bugs that can no longer be planted: their text must stand in its file exactly once. Code that is
// rewritten takes its bugs along, or the list slowly tests nothing. read gives a file by its path.
func lostPlants(bugs []plant, read func(path string) (string, error)) (out []string) {
	seen := map[string]bool{}
	for _, b := range bugs {
		text, err := read(b.File)
		switch n := strings.Count(text, b.Old); {
		case err != nil:
			out = append(out, fmt.Sprintf("%s: %v", b.Name, err))
		case b.Old == "" || n != 1:
			out = append(out, fmt.Sprintf("%s: %s has %q %d times, want once: point it to where that code is now",
				b.Name, b.File, b.Old, n))
		case b.New == b.Old:
			out = append(out, fmt.Sprintf("%s: changes nothing", b.Name))
		case len(b.Tests) == 0:
			out = append(out, fmt.Sprintf("%s: no tests are to notice it", b.Name))
		case seen[b.Name]:
			out = append(out, fmt.Sprintf("%s: is listed twice", b.Name))
		}
		seen[b.Name] = true
	}
	return out
}

func TestPlants(t *testing.T) {
	root := filepath.Join("..", "..")
	lists, err := filepath.Glob(filepath.Join(root, "tools", "mutate", "*.json"))
	if err != nil || len(lists) < 3 {
		t.Fatalf("lists %v, %v", lists, err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var bugs []plant
		if err := json.Unmarshal(text, &bugs); err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		report(t, lostPlants(bugs, func(path string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root, path))
			return string(text), err
		}))
	}
}

func TestPlantsCanFail(t *testing.T) {
	read := func(path string) (string, error) {
		if path != "x.go" {
			return "", os.ErrNotExist
		}
		return "a b b c", nil
	}
	good := plant{"x: a is d", "x.go", "a", "d", []string{"."}}
	try := func(change func(*plant)) []string {
		p := good
		change(&p)
		return lostPlants([]plant{p}, read)
	}
	if out := try(func(*plant) {}); len(out) != 0 {
		t.Errorf("want no offender, got %q", out)
	}
	for name, change := range map[string]func(*plant){
		"twice": func(p *plant) { p.Old = "b" }, "gone": func(p *plant) { p.Old = "z" },
		"empty":   func(p *plant) { p.Old = "" },
		"no file": func(p *plant) { p.File = "y.go" }, "no change": func(p *plant) { p.New = p.Old },
		"no tests": func(p *plant) { p.Tests = nil },
	} {
		if out := try(change); len(out) != 1 {
			t.Errorf("%s: want one offender, got %q", name, out)
		}
	}
	if out := lostPlants([]plant{good, good}, read); len(out) != 1 {
		t.Errorf("listed twice: got %q", out)
	}
}
