package hf

import (
	"path/filepath"
	"slices"
	"testing"

	"antiphase/internal/safetensors"
	"antiphase/model"
)

// TestRelay checks exported rotary rows against transformers' own convention, written out: rotate_half turns rows (j,
// d/2+j) of a head together, ours turn neighbours (2j, 2j+1). The file is read without our own layout.
func TestRelay(t *testing.T) {
	for _, arch := range []string{"transformer", "diff"} {
		m := trained(t, nano(t, arch, func(c *model.Config) { c.KVHeads = c.Heads }))
		c := m.Config
		dir := filepath.Join(t.TempDir(), "x")
		if err := (&Export{Config: c, Values: valuesOf(m)}).Write(dir, false); err != nil {
			t.Fatal(err)
		}
		f, err := safetensors.Open(filepath.Join(dir, weightsFile))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		ours, err := valuesOf(m)("layers.1.attn.qkv.weight")
		if err != nil {
			t.Fatal(err)
		}
		heads, d := c.Heads, c.HeadDim
		if arch == "diff" {
			heads *= 2
		}
		for at, name := range []string{"q_proj", "k_proj"} {
			theirs, err := f.Float32s("model.layers.1.self_attn." + name + ".weight")
			if err != nil {
				t.Fatal(err)
			}
			for h := range heads {
				place := h // DiffLlama keeps first maps in the first half of the heads
				if arch == "diff" {
					place = h%2*(heads/2) + h/2
				}
				for j := range d / 2 {
					for k, row := range []int{place*d + j, place*d + d/2 + j} {
						our := (at*heads+h)*d + 2*j + k
						if !slices.Equal(theirs[row*c.Dim:(row+1)*c.Dim], ours[our*c.Dim:(our+1)*c.Dim]) {
							t.Fatalf("%s, %s: row %d of head %d is not our row %d", arch, name, row, place, our)
						}
					}
				}
			}
		}
		back, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Values()("layers.1.attn.qkv.weight")
		back.Close()
		// Read back, the model turns halves: its rows are the file's. Heads of a pair are neighbours again.
		if err != nil || len(again) != len(ours) {
			t.Fatalf("%d values came back, %v", len(again), err)
		}
	}
}

// TestOuterContext: of two statements about the context before scaling transformers takes the outer one.
func TestOuterContext(t *testing.T) {
	scaling := dict{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
	f := mustParse(t, with(small("llama"), dict{"rope_parameters": scaling, "original_max_position_embeddings": 24}))
	if got := f.Config.RopeScaling.OriginalContext; got != 24 {
		t.Errorf("the context before scaling is %d, want the outer 24", got)
	}
	f = mustParse(t, with(small("llama"), dict{"rope_parameters": scaling}))
	if got := f.Config.RopeScaling.OriginalContext; got != 16 {
		t.Errorf("the context before scaling is %d, want the inner 16", got)
	}
}
