package data

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlapsOf opens the specs and returns what Overlaps says of them, without the folder's name.
func overlapsOf(t *testing.T, dir string, specs ...string) []string {
	t.Helper()
	var src []Source
	for i, spec := range specs {
		if !strings.HasPrefix(spec, "synthetic") {
			spec = filepath.Join(dir, spec)
		}
		specs[i] = spec
		src = append(src, open(t, spec))
	}
	list := Overlaps(specs, src)
	for i := range list {
		list[i] = filepath.ToSlash(strings.ReplaceAll(list[i], dir+string(filepath.Separator), ""))
	}
	return list
}

// Sources that share text are named, whatever their other options or spellings; sources that do not are not.
func TestOverlaps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes/a.md", "notes/sub/b.txt", "other/a.md"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte("some text"))
	}
	for _, c := range []struct {
		specs []string
		want  []string // parts of the only warning; nil for none
	}{
		{[]string{"synthetic:len=512", "synthetic:len=1024"},
			[]string{"sources synthetic:len=512 and synthetic:len=1024 have the same seed 1", "such as seed=2"}},
		{[]string{"synthetic:seed=2", "synthetic", "synthetic:seed=2,digits=3"},
			[]string{"synthetic:seed=2 and synthetic:seed=2,digits=3", "the same seed 2", "such as seed=3"}},
		{[]string{"synthetic", "synthetic:docs=9", "synthetic:asks=1"},
			[]string{"synthetic, synthetic:docs=9 and synthetic:asks=1"}},
		{[]string{"synthetic:mix=prose", "synthetic:mix=kv"}, nil},
		{[]string{"synthetic", "synthetic:seed=2", "notes"}, nil},
		{[]string{"notes", "other"}, nil},
		{[]string{"notes", "other", "notes/sub"}, []string{"notes and notes/sub both read notes/sub/b.txt, so text"}},
		{[]string{"notes/*.md", "notes/../notes"}, []string{"both read notes/a.md, so text"}},
		{[]string{"notes", "./notes"}, []string{"both read notes/a.md and 1 more"}},
	} {
		list := overlapsOf(t, dir, c.specs...)
		if len(list) != min(len(c.want), 1) {
			t.Errorf("%v: warnings %q, want %q in one", c.specs, list, c.want)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(list[0], part) {
				t.Errorf("%v: %q, want %q in it", c.specs, list[0], part)
			}
		}
	}
}

// Each group of sources that share a seed and kinds is named, two groups of one seed too, and a source that joins two
// others makes them one.
func TestOverlapsOfGroups(t *testing.T) {
	for _, c := range []struct {
		specs []string
		want  []string
	}{
		{[]string{"synthetic:mix=prose", "synthetic:mix=kv", "synthetic:mix=prose,len=200", "synthetic:mix=kv,len=200"},
			[]string{"synthetic:mix=prose and synthetic:mix=prose,len=200 have",
				"synthetic:mix=kv and synthetic:mix=kv,len=200 have"}},
		{[]string{"synthetic:mix=prose", "synthetic:mix=kv", "synthetic:mix=prose+kv"},
			[]string{"synthetic:mix=prose, synthetic:mix=kv and synthetic:mix=prose+kv have"}},
		{[]string{"synthetic:mix=prose", "synthetic:mix=prose+kv", "synthetic:mix=kv", "synthetic:seed=2",
			"synthetic:mix=arith"}, []string{"synthetic:mix=prose, synthetic:mix=prose+kv and synthetic:mix=kv have"}},
	} {
		list := overlapsOf(t, "", c.specs...)
		if len(list) != len(c.want) {
			t.Errorf("%v: %q, want %q", c.specs, list, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(list[i], "sources "+want) {
				t.Errorf("%v: %q, want %q", c.specs, list[i], want)
			}
		}
	}
}

// The warnings are true: documents of two generators with one seed have long passages in common, those of two seeds do
// not.
func TestOneSeedGivesTwins(t *testing.T) {
	const passage = 64 // bytes
	passages := func(spec string) map[string]bool {
		set := map[string]bool{}
		for d, err := range open(t, spec).Documents(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+passage <= len(d.Text); i++ {
				set[d.Text[i:i+passage]] = true
			}
		}
		return set
	}
	common := func(a, b map[string]bool) (n int) {
		for p := range a {
			if b[p] {
				n++
			}
		}
		return n
	}
	short := passages("synthetic:docs=100,len=512,mix=prose")
	same, other := common(short, passages("synthetic:docs=100,len=1024,mix=prose")),
		common(short, passages("synthetic:docs=100,len=1024,mix=prose,seed=2"))
	if same < len(short)/2 || other > len(short)/20 {
		t.Errorf("of %d passages %d are in the twin with the same seed and %d in another's", len(short), same, other)
	}
}
