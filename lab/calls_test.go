package lab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model/modeltest"
)

// A look rests after every layer, however little it reads, and ends with the cause of its context.
func TestRestsAndCause(t *testing.T) {
	m := network(t, ref.New(), "diff")
	q := Query{IDs: prompt(5), Layers: []int{}, Maps: nil}
	if err := q.Complete(m.Config); err != nil {
		t.Fatal(err)
	}
	rests := 0
	if r, err := Look(context.Background(), m, &q, spell, func() { rests++ }); err != nil || rests < 3 ||
		len(r.Shown) != 0 || r.Maps != 2 {
		t.Errorf("%d rests in three layers, %v", rests, err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	stop(gone)
	if _, err := Look(ctx, m, &q, spell, nil); !errors.Is(err, gone) {
		t.Errorf("%v, want the cause", err)
	}
}

// What is wrong with a query is said with the field, the value and what would be right; the largest that may be is
// taken.
func TestWordsOfQueries(t *testing.T) {
	c := network(t, ref.New(), "diff").Config
	half := 0.5
	for want, q := range map[string]Query{
		"layers: has 3, must lie between 0 and 2: there are 3 layers": {Layers: []int{3}},
		"heads: has -1, must lie between 0 and 3: there are 4 heads":  {Heads: []int{-1}},
		"rows: has 6 entries, there are 5 tokens":                     {Rows: []int{0, 1, 2, 3, 4, 4}},
		"next: has 1 twice":                                 {Next: []int{1, 0, 1}},
		`maps: has "a3", may have a1, a2 and diff`:          {Maps: []string{"a3"}},
		`maps: has "a1" twice`:                              {Maps: []string{A1, A1}},
		"interventions: has 4097 entries, the most is 4096": {Interventions: make([]layer.Intervention, 4097)},
		"interventions: heads: has 1 twice": {Interventions: []layer.Intervention{{Lambda: &half},
			{Heads: []int{1, 1}}}},
		"interventions: layers: has 2 twice": {Interventions: []layer.Intervention{{Layers: []int{2, 0, 2},
			Lambda: &half}}},
		"": {Layers: []int{2, 0, 1}, Heads: []int{3}, Rows: []int{4, 3, 2, 1, 0},
			Next: []int{0, 4}, Maps: []string{Diff, A2, A1}, Interventions: make([]layer.Intervention, 4096)},
	} {
		q.IDs = prompt(5)
		err := q.Complete(c)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	one := network(t, ref.New(), "transformer").Config
	q := Query{IDs: prompt(5), Maps: []string{A1, A2}}
	if err := q.Complete(one); err == nil ||
		err.Error() != "maps: has a2, but the heads of this model have one map only, a1" {
		t.Error(err)
	}
}

// A prompt of more tokens than a page can tell apart is not whole in a file, however much room there is.
func TestFileOfALongPrompt(t *testing.T) {
	c := modeltest.Tiny("transformer", 40, 300)
	m := modeltest.New(t, processor(t), c, layer.Memory{}, 11)
	var f File
	for _, T := range []int{256, 257} {
		if err := f.Add(context.Background(), Subject{"m", m, prompt(T), spell}, 1<<40); err != nil {
			t.Fatal(err)
		}
		got := f.Looks[len(f.Looks)-1]
		next := map[bool]int{true: T, false: 1}[got.Whole]
		if got.Whole != (T == 256) || got.Tile != map[int]int{256: 1, 257: 2}[T] || len(got.Next) != next ||
			len(got.Next[0].Top) != 8 {
			t.Errorf("%d tokens: whole %v, tile %d, %d next", T, got.Whole, got.Tile, len(got.Next))
		}
	}
}

// The keys of a file, which the page reads by these names.
func TestKeysOfAFile(t *testing.T) {
	m := network(t, ref.New(), "diff2")
	f := File{Text: "t", State: "s"}
	s := Subject{"m", m, prompt(2), spell}
	if err := f.Add(context.Background(), s, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Try(context.Background(), s, Interventions(m.Config, false)[:1]); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		Looks    []map[string]any
		Outcomes map[string]map[string]any
	}
	if err := json.Unmarshal(b, &x); err != nil || len(x.Looks) != 1 || len(x.Outcomes) != 1 {
		t.Fatalf("%s: %v", b, err)
	}
	if !strings.HasPrefix(string(b),
		`{"text":"t","state":"s","models":[{"id":"m","meta":{"arch":"diff2","n_layer":3,"n_head":4,"n_maps":2}}],"looks":[{"model":"m","whole":true,"arch":"diff2","layers":3,"heads":4,"maps":2,"tile":1,`) {
		t.Errorf("%.300s", b)
	}
	look := x.Looks[0]
	shown, next, token := look["shown"].([]any)[11].(map[string]any), look["next"].([]any)[1].(map[string]any),
		look["tokens"].([]any)
	if shown["layer"] != 2.0 || shown["head"] != 3.0 || shown["lambda"] == 0.0 || shown["lambdas"] == nil ||
		len(shown["maps"].(map[string]any)) != 2 || next["token"] != 1.0 || len(next["top"].([]any)) != 8 {
		t.Errorf("%v %v", shown, next)
	}
	if first, second := token[0].(map[string]any), token[1].(map[string]any); first["logprob"] != nil ||
		second["logprob"] == nil || second["text"] != spell(prompt(2)[1]) || second["id"] != float64(prompt(2)[1]) {
		t.Errorf("%v", token)
	}
	if o := x.Outcomes["lambda=0"]; o["loss"] == nil || o["next"].([]any)[0].(map[string]any)["token"] != 1.0 {
		t.Errorf("%v", x.Outcomes)
	}
}

// λ is shown of each head as interventions leave it; what was not asked for is empty, as a list where the page takes
// one.
func TestLambdaOfSomeHeads(t *testing.T) {
	m := network(t, ref.New(), "diff")
	q := Query{IDs: prompt(6), Rows: []int{2}}
	plain := ask(t, m, q)
	half := 0.5
	q.Interventions = []layer.Intervention{{Lambda: &half, Heads: []int{1, 3}}}
	changed := ask(t, m, q)
	for i, h := range changed.Shown {
		want := plain.Shown[i].Lambda
		if h.Head%2 == 1 {
			want *= half
		}
		if !(math.Abs(h.Lambda-want) <= 1e-6) || want == 0 || h.Lambdas != nil || h.Rows != nil || h.Maps != nil {
			t.Errorf("layer %d, head %d: λ %g, want %g: %+v", h.Layer, h.Head, h.Lambda, want, h)
		}
	}
	b, err := json.Marshal(plain)
	if err != nil || !strings.Contains(string(b), `"next":[]`) {
		t.Errorf("%s, %v", b, err)
	}
}
