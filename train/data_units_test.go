package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// Shares are the recipe's weights and epochs, of a single bounded source 1, and none without either.
func TestSharesOfARecipe(t *testing.T) {
	for _, x := range []struct {
		src  []recipe.Source
		want []data.Share
	}{
		{recipe.Paths("a", "b"), nil}, {[]recipe.Source{{Path: "a", Weight: 2}, {Path: "b", Weight: 3, Epochs: 4}},
			[]data.Share{{Weight: 2}, {Weight: 3, Epochs: 4}}},
		{[]recipe.Source{{Path: "a", Epochs: 1.5}}, []data.Share{{Weight: 1, Epochs: 1.5}}},
	} {
		if got := shares(recipe.Recipe{Data: recipe.Data{Sources: x.src}}); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%v: %v, want %v", x.src, got, x.want)
		}
	}
}

// A built set is mixed as the recipe says, else as it was built; a set of the run's own only as the recipe says.
func TestSharesOfASet(t *testing.T) {
	src, twice := listed{texts: []string{strings.Repeat("a", 99)}}, []data.Share{{Weight: 1, Epochs: 2}}
	for _, x := range []struct {
		built  []data.Share
		own    bool
		epochs float64 // of the recipe
		want   float64 // below 0: refused
	}{
		{twice, false, 0, 2}, {twice, false, 3, 3}, {twice, true, 0, 0}, {twice, true, 3, 3}, {nil, false, 0, 0},
		{nil, false, 3, -1}, {nil, true, 0, 0},
	} {
		dir := filepath.Join(t.TempDir(), "set")
		if _, err := data.Build(t.Context(), dir, []data.Source{src}, tokenizer.Bytes(),
			data.BuildOptions{Shares: x.built}); err != nil {
			t.Fatal(err)
		}
		set, err := data.OpenSet(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		source := recipe.Source{Path: dir, Epochs: x.epochs}
		if x.own {
			source.Path = "synthetic"
		}
		sp, err := trainSplit(set, recipe.Recipe{Data: recipe.Data{Sources: []recipe.Source{source}}})
		if (err != nil) != (x.want < 0) {
			t.Errorf("%+v: %v", x, err)
		}
		if err == nil && sp.Parts()[0].Epochs != x.want {
			t.Errorf("%+v: %g epochs", x, sp.Parts()[0].Epochs)
		}
	}
}

// A source with a row exactly is enough, one token less is not; the epochs' rows are enough for as many steps, and the
// error names the number that would fit.
func TestRowsAreEnough(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	src := listed{texts: []string{strings.Repeat("a", 99)}} // 100 tokens with its end
	if _, err := data.Build(context.Background(), dir, []data.Source{src}, tokenizer.Bytes(),
		data.BuildOptions{Shares: []data.Share{{Weight: 1, Epochs: 2}}}); err != nil {
		t.Fatal(err)
	}
	set, err := data.OpenSet(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	whole, err := set.Split(data.Train)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		seq, steps, batch int
		epochs            float64
		want              string
	}{
		{100, 1, 1, 0, ""}, {101, 1, 1, 0, "has 100 tokens to train on, one row has train.seq_len = 101"},
		{10, 10, 2, 2, ""}, {10, 11, 2, 2, "set train.steps=10"}, {10, 21, 1, 2, "set train.steps=20"},
		{50, 1, 1, 0.5, ""}, {51, 1, 1, 0.5, "less than one row"}, {100, 1000, 8, 0, ""},
	} {
		r := recipe.Recipe{Train: recipe.Train{SeqLen: x.seq, Steps: x.steps, Batch: x.batch}}
		sp := whole
		if x.epochs > 0 {
			if sp, err = whole.Mix([]data.Share{{Weight: 1, Epochs: x.epochs}}); err != nil {
				t.Fatal(err)
			}
		}
		err := checkRows(sp, loader(sp, r, x.batch, 1), r)
		var source *data.SourceError
		if (err == nil) != (x.want == "") || err != nil &&
			(!errors.As(err, &source) || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// A tokenizer fits a model with as many ids; the advice is the next multiple of 64.
func TestTokenizerFits(t *testing.T) {
	tok := tokenizer.Bytes()
	n := tok.Vocab()
	for vocab, good := range map[int]bool{n: true, n + 1: true, n - 1: false} {
		r := nano(t, "diff")
		r.Model.Vocab = vocab
		err := fits(tok, r)
		want := fmt.Sprintf("train: the tokenizer has %d ids, model.vocab is %d: set model.vocab=%d", n,
			vocab, (n+63)/64*64)
		if (err == nil) != good || err != nil && err.Error() != want {
			t.Errorf("%d ids in a vocabulary of %d: %v", n, vocab, err)
		}
	}
}

// Bytes of a parameter: weight and gradient, its master, and two moments, of which ranks that share them hold a part.
func TestMemoryByHand(t *testing.T) {
	full, mixed := device.Types{Act: tensor.F32, Stat: tensor.F32}, device.Types{Act: tensor.BF16, Stat: tensor.F32}
	r := nano(t, "diff", "train.batch=4")
	n := int64(r.Model.PartCount(1))
	for _, x := range []struct {
		t       device.Types
		rounded bool
		l       Layout
		want    int64
	}{
		{full, false, Layout{}, n * (4 + 4 + 8)}, {full, true, Layout{}, n * (4 + 4 + 4 + 8)},
		{mixed, false, Layout{}, n * (2 + 4 + 2 + 8)}, {mixed, true, Layout{}, n * (2 + 4 + 2 + 8)},
		{full, false, Layout{Data: 4, Shard: true}, n*8 + n*8/4},
		{mixed, false, Layout{Data: 4, Shard: true}, n*6 + n*10/4}, {full, false, Layout{Data: 4}, n * 16},
	} {
		r.Optim.RoundBF16 = x.rounded
		m := MemoryOf(r, x.t, x.l)
		if m.State != x.want || m.Sum() != m.State+m.Activations || m.Activations <= 0 {
			t.Errorf("%+v: %d bytes, want %d", x, m.State, x.want)
		}
		double := r
		double.Train.MicroBatch *= 2
		if twice := MemoryOf(double, x.t, x.l); twice.Activations != 2*m.Activations || twice.State != m.State {
			t.Errorf("twice the rows take %d and %d", twice.Activations, m.Activations)
		}
	}
}

// A recipe's pattern is the tokenizer's, and so are its size and its end of text.
func TestTokenizerOfARecipe(t *testing.T) {
	for name, text := range map[string]string{"llama3": tokenizer.PatternLlama3, "gpt2": tokenizer.PatternGPT2,
		"qwen2": tokenizer.PatternQwen2} {
		r := nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=259", "tokenizer.docs=5", "tokenizer.pattern="+name)
		stages := map[string]int64{}
		tok, err := MakeTokenizer(t.Context(), r, &Options{Progress: func(stage string, done, total int64) {
			if stages[stage] = done; done > total {
				t.Errorf("%d of %d", done, total)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := tok.MarshalJSON()
		quoted, _ := json.Marshal(text)
		splits := strings.Contains(string(b), strings.Trim(string(quoted), `"`))
		if name == "gpt2" { // the file format's own default
			splits = strings.Contains(strings.ReplaceAll(string(b), " ", ""), `"use_regex":true`)
		}
		if err != nil || !splits || tok.Vocab() != 259 || stages["tokenizer"] == 0 {
			t.Errorf("%s: %d ids, %v, %v", name, tok.Vocab(), stages, err)
		}
		if id, ok := tok.EOS(); !ok || tok.Token(id) != "<|endoftext|>" {
			t.Errorf("%s: %d, %v", name, id, ok)
		}
	}
	if len(patterns) != len(recipe.Patterns) {
		t.Errorf("%d patterns of %d", len(patterns), len(recipe.Patterns))
	}
}
