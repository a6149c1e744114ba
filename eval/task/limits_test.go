package task

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/eval"
)

// A limit counts the answers of all variants together, at least one of each, and the texts of the divergence apart;
// without one the task's own number of questions counts.
func TestLimitsOfVariants(t *testing.T) {
	for _, c := range []struct {
		limit, questions, texts int
	}{{0, 5, 3}, {1, 1, 1}, {6, 1, 3}, {14, 2, 3}, {1000, 5, 3}} { // exact and six precisions
		set := map[string]string{"lowbit.samples": "5", "lowbit.texts": "3", "lowbit.task": "piqa",
			"lowbit.length": "40"}
		j := prepared(t, lookup(t, "lowbit"), eval.Options{Limit: c.limit, Shots: -1, Set: set}, 256)
		exact, kl := 0, 0
		for _, id := range j.IDs {
			switch {
			case strings.HasPrefix(id, "exact "):
				exact++
			case strings.HasPrefix(id, "kl "):
				kl++
			}
		}
		if exact != c.questions || kl != c.texts || len(j.IDs) != 7*exact+kl || j.Chunk != exact {
			t.Errorf("limit %d: %d questions of each of seven, %d texts: %q", c.limit, exact, kl, j.IDs)
		}
	}
	for limit, want := range map[int]int{0: 4, 2: 2} { // plain and knockout@H1
		set := map[string]string{"interventions.ways": "knockout@H1", "interventions.pieces": "4",
			"interventions.samples": "1", "interventions.needles": "1", "interventions.each": ""}
		j := prepared(t, lookup(t, "interventions"), eval.Options{Limit: limit * 2, Shots: -1, Set: set}, 256)
		plain := 0
		for _, id := range j.IDs {
			if strings.HasPrefix(id, "loss plain ") {
				plain++
			}
		}
		if plain != want || slices.ContainsFunc(j.IDs, func(s string) bool { return strings.HasPrefix(s, "each ") }) {
			t.Errorf("limit %d: %d texts, want %d; %q", 2*limit, plain, want, j.IDs)
		}
	}
	j := prepared(t, lookup(t, "throughput"),
		eval.Options{Shots: -1, Set: map[string]string{"throughput.lengths": "8,0", "throughput.reps": "2",
			"throughput.tokens": "100"}}, 64)
	if want := []string{"length=8 0", "length=8 1", "length=64 0", "length=64 1"}; !slices.Equal(j.IDs, want) ||
		j.Chunk != 2 {
		t.Errorf("%q", j.IDs)
	}
}

// Generated held-out text is of no seed that training takes by default or by the same number.
func TestGeneratedTextIsHeldOut(t *testing.T) {
	const seed = 3
	j := prepared(t, lookup(t, "lm"), eval.Options{Seed: seed, Limit: 2, Shots: -1}, 64)
	docs, err := generated(t.Context(), j.Plan, 100, 30)
	if err != nil || len(docs) != 30 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, d := range docs {
		if len(d) < 100 {
			t.Errorf("a document of %d bytes", len(d))
		}
	}
	s := data.NewSynthetic()
	s.Bytes, s.Mix = 128*5/4, map[string]int{"needle": 4, "kv": 4, "prose": 1}
	for _, s.Seed = range []uint64{0, 1, 2, seed} {
		for i := range 100 {
			if slices.Contains(docs, s.Document(i).Text) {
				t.Fatalf("document %d of seed %d is held out", i, s.Seed)
			}
		}
	}
	other := prepared(t, lookup(t, "lm"), eval.Options{Seed: seed + 1, Limit: 2, Shots: -1}, 64)
	if again, _ := generated(t.Context(), other.Plan, 100, 30); slices.Contains(again, docs[0]) {
		t.Error("another seed has the same text")
	}
}

// Of a set that is there twice, compressed and not, the compressed one is read.
func TestCompressedSetsComeFirst(t *testing.T) {
	dir := t.TempDir()
	row := func(q string) string {
		return fmt.Sprintf(`{"id": 1, "query": %q, "choices": ["a", "b"], "gold": 0}`, q)
	}
	writeSet(t, dir, "mc/piqa_val", row("plain"))
	f, err := os.Create(filepath.Join(dir, "mc", "piqa_val.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, row("packed"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if j := prepared(t, lookup(t, "piqa"), eval.Options{Data: dir},
		256); !strings.Contains(j.Gold[0].Context, "packed") {
		t.Errorf("%q", j.Gold[0].Context)
	}
}
