package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/recipe"
)

// topics are long texts, each with a vocabulary of its own in a common grammar, as books are. Text i is n sentences;
// the seed draws the sentences, not the vocabularies.
func topics(books, n int, seed uint64) []string {
	out := make([]string, books)
	for i := range out {
		words := rand.New(rand.NewPCG(uint64(i), 77))
		var names []string
		for range 12 {
			w := make([]byte, 3+words.IntN(4))
			for j := range w {
				w[j] = "bcdfghklmnprstvz"[words.IntN(16)]
				if j%2 == 1 {
					w[j] = "aeiou"[words.IntN(5)]
				}
			}
			names = append(names, string(w))
		}
		g := rand.New(rand.NewPCG(uint64(i), seed))
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "The %s saw a %s by the %s. ", names[g.IntN(12)], names[g.IntN(12)], names[g.IntN(12)])
		}
		out[i] = b.String()
	}
	return out
}

// cutUp cuts texts into documents of n bytes.
func cutUp(texts []string, n int) (out []string) {
	for _, s := range texts {
		for len(s) > n {
			out, s = append(out, s[:n]), s[n:]
		}
		out = append(out, s)
	}
	return out
}

func writeJSONL(t *testing.T, path string, docs []string) {
	t.Helper()
	var b strings.Builder
	for _, d := range docs {
		line, err := json.Marshal(map[string]string{"text": d})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lossOn trains r on a file and gives its loss on the texts of another.
func lossOn(t *testing.T, r recipe.Recipe, file, valid string, batches int) float64 {
	t.Helper()
	dir := t.TempDir()
	opt := options(t, filepath.Join(dir, "run"))
	if err := r.Set("data.sources", file); err != nil {
		t.Fatal(err)
	}
	mustRun(t, r, opt)
	s, m := opened(t, opt)
	src, err := data.Open(valid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := data.Build(context.Background(), filepath.Join(dir, "valid"), []data.Source{src}, s.Tokenizer,
		data.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	set, err := data.OpenSet(filepath.Join(dir, "valid"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	sp, err := set.Split(data.Train)
	if err != nil {
		t.Fatal(err)
	}
	r.Data.Order = "random"
	loss, err := HeldOut(m, sp, r, batches)
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// Whole long documents and the same ones cut up are learnt equally well where a batch is a random sample. In a stream a
// step sees one or two topics only, and what it learns of one is overwritten by the next.
func TestWholeDocumentsLearnAsWell(t *testing.T) {
	dir := t.TempDir()
	whole, cut, valid := filepath.Join(dir, "whole.jsonl"), filepath.Join(dir, "cut.jsonl"),
		filepath.Join(dir, "valid.jsonl")
	books := topics(24, 130, 1)
	writeJSONL(t, whole, books)
	writeJSONL(t, cut, cutUp(books, 150))
	writeJSONL(t, valid, topics(24, 20, 2))
	loss := map[string]float64{}
	for _, order := range []string{"random", "stream"} {
		for name, file := range map[string]string{"whole": whole, "cut": cut} {
			r := nano(t, "transformer", "train.steps=350", "train.batch=8", "train.seq_len=32", "train.save_every=0",
				"data.held_out=0", "data.order="+order)
			loss[order+" "+name] = lossOn(t, r, file, valid, 60)
		}
	}
	t.Logf("held-out loss: random %.3f whole, %.3f cut; stream %.3f whole, %.3f cut", loss["random whole"],
		loss["random cut"], loss["stream whole"], loss["stream cut"])
	if d := loss["random whole"] - loss["random cut"]; !(math.Abs(d) <= 0.05) {
		t.Errorf("whole documents end %.3f nats from the same ones cut up, at most 0.05 allowed", d)
	}
}
