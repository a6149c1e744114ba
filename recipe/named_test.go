package recipe

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/layer"
)

var update = flag.Bool("update", false, "write testdata/named.txt anew")

// TestNamedRecipes: a name means the same run in every version. testdata/named.txt has every setting of every size for
// the Transformer, and for the other architectures what differs. Rewriting it is a change that users notice.
func TestNamedRecipes(t *testing.T) {
	var b strings.Builder
	for _, s := range Sizes() {
		base, err := s.Make("transformer")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s transformer\n", s.Name)
		for _, f := range base.Fields() {
			fmt.Fprintf(&b, "  %s = %s\n", f.Path, f.Value)
		}
		for _, a := range layer.Archs() {
			if a.Name == "transformer" {
				continue
			}
			ra, rb, err := Pair(s.Name, "transformer", a.Name)
			if err != nil || len(Diff(base, ra)) != 0 {
				t.Fatalf("a pair of %s: %v, %v", s.Name, err, Diff(base, ra))
			}
			fmt.Fprintf(&b, "%s %s\n", s.Name, a.Name)
			for _, c := range Diff(ra, rb) {
				fmt.Fprintf(&b, "  %s = %s\n", c.Path, c.New)
			}
		}
	}
	path := filepath.Join("testdata", "named.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, have := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(got), len(have)) {
		if got[i] != have[i] {
			t.Fatalf("line %d is %q, was %q", i+1, got[i], have[i])
		}
	}
	if len(got) != len(have) {
		t.Errorf("%d lines, were %d", len(got), len(have))
	}
}

// Names that do not exist are refused with those that do, whichever of the two is wrong.
func TestUnknownNames(t *testing.T) {
	for _, c := range []struct{ size, a, b, want string }{
		{"huge", "diff", "diff", `size: "huge" is unknown; there are nano, tiny`},
		{"nano", "dif", "diff", "model."}, {"nano", "diff", "dif", "model."},
	} {
		if _, _, err := Pair(c.size, c.a, c.b); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// Read names the file and its line; a file over the limit is refused without reading on.
func TestReadNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r, _ := Nano("diff")
	if err := r.Read(put("good.yaml", "train:\n  steps: 3\n---\nname: second\n")); err != nil || r.Train.Steps != 3 ||
		r.Name != "second" {
		t.Errorf("%v, %+v", err, r.Train)
	}
	bad, long := put("bad.yaml", "train:\n  stepz: 3\n"), put("long.yaml", "# "+strings.Repeat("x", maxFile))
	for path, want := range map[string]string{
		bad: "recipe: " + bad + ":2: train.stepz", filepath.Join(dir, "none"): "recipe: open ",
		long:                      "recipe: " + long + ":1: the file is larger than 1048576 bytes",
		put("list.yaml", "- a\n"): "want keys and values here", put("syntax.yaml", "a: [\n"): "recipe: ",
	} {
		if err := r.Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, want)
		}
	}
}

// The limits that keep the YAML parser's memory small, on both sides.
func TestShallow(t *testing.T) {
	for name, c := range map[string]struct {
		good, bad string
	}{
		"size": {strings.Repeat("x", maxFile), strings.Repeat("x", maxFile+1)},
		"flow": {strings.Repeat("[{", maxNesting/2), strings.Repeat("[{", maxNesting/2) + "["},
		"closed": {strings.Repeat("[]", maxNesting+1) + strings.Repeat("{}", maxNesting+1), strings.Repeat("]", 9) +
			strings.Repeat("{", maxNesting+1)},
		"marks":  {strings.Repeat("- ", maxNesting-1) + ": x", strings.Repeat("? ", maxNesting) + "- x"},
		"both":   {strings.Repeat("- ", maxNesting-1) + "[", strings.Repeat("- ", maxNesting) + "["},
		"pairs":  {strings.Repeat("[", maxNesting-1) + "[][", strings.Repeat("[", maxNesting) + "[]"},
		"twice":  {"]}" + strings.Repeat("[{", maxNesting/2), strings.Repeat("[", maxNesting) + "]]" + "[[["},
		"colons": {strings.Repeat(": ", maxNesting) + "x", strings.Repeat(": ", maxNesting+1) + "x"},
		"lines":  {strings.Repeat("- ", maxNesting) + "x\n- [", strings.Repeat("[\n", maxNesting+1)},
		"quotes": {strings.Repeat(`"`, maxQuotes/2) + strings.Repeat("'", maxQuotes/2),
			strings.Repeat(`"`, maxQuotes) + "'"},
		"indent":  {strings.Repeat(" ", 8*maxNesting) + "x", strings.Repeat(" ", 8*maxNesting+1) + "x"},
		"padding": {strings.Repeat(" ", 9*maxNesting) + "\n", "a\n" + strings.Repeat(" ", 9*maxNesting) + "x"},
	} {
		if err := shallow([]byte(c.good)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := shallow([]byte(c.bad)); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := shallow([]byte("a\nb\n" + strings.Repeat("[", 33))); err == nil ||
		!strings.HasPrefix(err.Error(), "3: ") {
		t.Errorf("the third line: %v", err)
	}
}

// Text that replaces an object's fields, and text after it.
func TestSourceTexts(t *testing.T) {
	for s, want := range map[Source]string{
		{Path: "a"}: "a", {Path: "a", Weight: 0.25}: "a@0.25", {Path: "a", Epochs: 2}: "a (at most 2 epochs)",
		{Path: "a", Weight: 3, Epochs: 1.5}: "a@3 (at most 1.5 epochs)",
		{Path: "a", Epochs: 0.5}:            "a (at most 0.5 epochs)",
	} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, tail := range []string{` {"path": "b"}`, "]", "}", " x", ","} {
		if _, err := ParseSource(`{"path": "a"}` + tail); err == nil ||
			!strings.Contains(err.Error(), "text after it") {
			t.Errorf("%q after an object: %v", tail, err)
		}
	}
	mixed := map[bool][]Source{true: {{Path: "a", Epochs: 1}}, false: nil}
	for want, list := range mixed {
		if d := (Data{Sources: list}); d.Mixed() != want {
			t.Errorf("%v: mixed %v", list, !want)
		}
	}
}

// A complete recipe of an older version keeps the meaning it had; one that states only differences gets today's
// defaults.
func TestOldRecipesRecomputeNothing(t *testing.T) {
	r, _ := Named("6.8b", "diff")
	whole, older := string(r.JSON()), ""
	for line := range strings.Lines(whole) {
		if !strings.Contains(line, `"recompute"`) {
			older += line
		}
	}
	for text, want := range map[string]layer.Recompute{whole: "blocks", older: "off",
		`{"train": {"keep_last": 3}}`: "blocks"} {
		back, _ := Named("6.8b", "diff")
		if err := back.Parse([]byte(text)); err != nil || back.Train.Recompute != want {
			t.Errorf("recompute %q, want %q (%v)", back.Train.Recompute, want, err)
		}
	}
}
