package lab

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// A file has what queries answer: maps of single tokens and the next tokens after each where they fit, otherwise tiles
// of as many rows as do, and the last token only.
func TestFile(t *testing.T) {
	const T = 20
	var f File
	for _, arch := range []string{"transformer", "diff"} {
		m := network(t, ref.New(), arch)
		maps := mapsOf(arch)
		maps = maps[:min(len(maps), 2)] // the difference follows from the two
		s := Subject{arch, m, prompt(T), spell}
		full := Query{IDs: s.IDs, Maps: maps, Size: T, Next: upTo(T), Top: 8}
		if err := full.Complete(m.Config); err != nil {
			t.Fatal(err)
		}
		cells, tiled := full.Cost().Cells, full
		tiled.Size, tiled.Next, tiled.Rows = 10, []int{T - 1}, []int{T - 1}
		exact := tiled.Cost().Cells // tiles of ten rows fill it
		for _, c := range []struct {
			cells int
			whole bool
		}{{cells, true}, {cells - 1, false}, {cells / 2, false}, {exact, false}, {exact - 1, false}, {0, false}} {
			if err := f.Add(context.Background(), s, c.cells); err != nil {
				t.Fatal(err)
			}
			got := f.Looks[len(f.Looks)-1]
			if got.Model != arch || got.Whole != c.whole {
				t.Errorf("%s of %d cells, %d allowed: %s, whole %v", arch, cells, c.cells, got.Model, got.Whole)
			}
			want := full
			if !c.whole {
				want.Next, want.Rows = []int{T - 1}, []int{T - 1}
				for want.Size = T; want.Size > 1 && want.Cost().Cells > c.cells; want.Size-- {
				}
			}
			if c.cells == exact && got.Tile != 2 || c.cells == exact-1 && got.Tile <= 2 {
				t.Errorf("%s: tiles of %d tokens, %d cells allowed", arch, got.Tile, c.cells)
			}
			if r := ask(t, m, want); !reflect.DeepEqual(r, got.Reply) {
				t.Errorf("%s of %d cells: the reply is not that of tiles of %d rows", arch, c.cells, want.Size)
			}
			card := f.Models[len(f.Models)-1]
			if card != (Card{arch, Meta{arch, 3, 4, len(maps)}}) {
				t.Errorf("card %+v", card)
			}
		}
	}
	over, stop := context.WithCancel(context.Background())
	stop()
	m := network(t, ref.New(), "diff")
	if err := f.Add(over, Subject{"x", m, prompt(4), spell}, 1<<20); err == nil {
		t.Error("a cancelled look is added")
	}
	if err := f.Try(over, Subject{"x", m, prompt(4), spell}, Interventions(m.Config, false)); err == nil ||
		len(f.Outcomes) > 0 {
		t.Error("a cancelled trial has outcomes")
	}
	if err := f.Add(context.Background(), Subject{"x", m, []int32{99}, spell}, 1<<20); err == nil {
		t.Error("an id outside the vocabulary is added")
	}
}

// Outcomes are those of single queries, each under its own name, and the interventions cover all layers and heads once.
func TestInterventions(t *testing.T) {
	for arch, n := range map[string][2]int{"transformer": {0, 3 * 4}, "diff": {10, 10*4 + 3*4}} {
		m := network(t, ref.New(), arch)
		s := Subject{arch, m, prompt(6), spell}
		for i, each := range []bool{false, true} {
			list := Interventions(m.Config, each)
			names := map[string]bool{}
			for _, v := range list {
				names[v.String()] = true
			}
			if len(list) != n[i] || len(names) != n[i] {
				t.Errorf("%s: %d interventions of %d names, want %d", arch, len(list), len(names), n[i])
			}
			var f File
			if err := f.Try(context.Background(), s, list); err != nil || len(f.Outcomes) != n[i] {
				t.Fatalf("%s: %d outcomes, %v", arch, len(f.Outcomes), err)
			}
			for _, v := range list {
				want := ask(t, m, Query{IDs: s.IDs, Next: []int{5}, Top: 8, Interventions: []layer.Intervention{v}})
				if got := f.Outcomes[v.String()]; got.Loss != want.Loss || !reflect.DeepEqual(got.Next, want.Next) ||
					len(got.Next) != 1 {
					t.Errorf("%s: %+v, want %g", v, got, want.Loss)
				}
			}
		}
	}
	var factors []float64
	for _, v := range Interventions(network(t, ref.New(), "diff").Config, false) {
		if v.Lambda != nil {
			factors = append(factors, *v.Lambda)
		}
	}
	if want := []float64{0, 0.25, 0.5, 0.75, 1.25, 1.5, 1.75, 2}; !slices.Equal(factors, want) {
		t.Errorf("factors of λ %v", factors)
	}
}

// Floats are exact, in base64 of little-endian float32.
func TestFloats(t *testing.T) {
	b, err := json.Marshal(Floats{1, -2.5})
	if err != nil || string(b) != `"AACAPwAAIMA="` { // 0000803f 000020c0
		t.Errorf("%s, %v", b, err)
	}
	want := Floats{0, float32(math.Copysign(0, -1)), math.MaxFloat32, math.SmallestNonzeroFloat32, 0.1}
	text, _ := want.MarshalText()
	var got Floats
	if err := got.UnmarshalText(text); err != nil || len(got) != len(want) {
		t.Fatal(got, err)
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%v became %v", want[i], got[i])
		}
	}
	if err := got.UnmarshalText([]byte("!")); err == nil {
		t.Error("no base64 passes")
	}
}

// A look rests after each piece of its work.
func TestRests(t *testing.T) {
	rests := 0
	p := newProbe(context.Background(), &Query{IDs: prompt(4), Size: 4}, func() { rests++ })
	for range 7 {
		p.spend(pieceEntries/2 - 1)
		p.spend(1)
	}
	if rests != 3 {
		t.Errorf("%d rests in three pieces and a half", rests)
	}
}
