package model

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/safetensors"
)

// open reads a file that Save wrote, after a change.
func open(t *testing.T, b []byte) *safetensors.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Weights come back to the bit; a file with a tensor too many, too few or of another shape is refused, and nothing is
// loaded of it.
func TestSaveLoad(t *testing.T) {
	c := configs(t)["diff2/base"]
	from := newModel(t, ref.New(), c)
	var b bytes.Buffer
	if err := from.Save(&b, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	values := func(m *Model) (out []float32) {
		for _, p := range m.Params.List {
			x := make([]float32, p.Rows*p.Cols)
			p.Read(m.Device(), x)
			out = append(out, x...)
		}
		return out
	}
	to := newModel(t, ref.New(), c)
	to.Init(99)
	before := values(to)
	other := c
	other.Layers++
	wide := c
	wide.FFN += 8
	for want, o := range map[string]Config{"is missing": other, "has shape": wide} {
		m := newModel(t, ref.New(), o)
		was := values(m)
		if err := m.Load(open(t, b.Bytes())); err == nil || !strings.Contains(err.Error(), want) ||
			!slices.Equal(values(m), was) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	fewer := c
	fewer.Layers--
	if err := newModel(t, ref.New(), fewer).Load(open(t, b.Bytes())); err == nil ||
		!strings.Contains(err.Error(), "is not a parameter") {
		t.Errorf("a tensor too many: %v", err)
	}
	if err := to.Load(open(t, b.Bytes())); err != nil {
		t.Fatal(err)
	}
	if got := values(to); slices.Equal(got, before) || !slices.Equal(got, values(from)) {
		t.Error("the weights that were loaded are not those that were saved")
	}
}

// A model that obeys has the logits of the one that leads; words that no leader sends are refused.
func TestLeadAndObey(t *testing.T) {
	c := configs(t)["diff/base"]
	lead, other := newModel(t, ref.New(), c), newModel(t, ref.New(), c)
	var sent [][]int32
	lost := errors.New("lost")
	fails := false
	lead.Lead(func(words []int32) error {
		if fails {
			return lost
		}
		sent = append(sent, slices.Clone(words))
		return other.Obey(words)
	})
	if err := lead.Score(&Batch{B: 1, T: 1, IDs: []int32{1}, Targets: []int32{1}}); !errors.Is(err, ErrParts) {
		t.Errorf("a pass over a batch: %v", err)
	}
	cache := lead.NewCache(4, 2, 2, 2)
	second := lead.NewCache(1, 2, 1, 1)
	for i, page := range []int32{2, 0} {
		cache.Assign(1, i, page)
	}
	second.Assign(0, 0, 0)
	cache.Commit()
	logits := func(c *Cache, n int) []float32 {
		y := make([]float32, n*lead.Config.Vocab)
		if err := c.ReadLogits(y); err != nil {
			t.Fatal(err)
		}
		return y
	}
	for step, r := range []Rows{
		{IDs: []int32{3, 4, 5}, Slots: []int32{1, 1, 1}, Pos: []int32{0, 1, 2}, Want: []int32{0, 2}},
		{IDs: []int32{6}, Slots: []int32{1}, Pos: []int32{3}, Want: []int32{0}},
	} {
		if err := cache.Run(r); err != nil {
			t.Fatal(err)
		}
		if got, want := logits(other.told[0], len(r.Want)), logits(cache, len(r.Want)); !slices.Equal(got, want) {
			t.Errorf("step %d: logits differ", step)
		}
		best, whole := make([]int32, len(r.Want)), logits(cache, len(r.Want))
		if err := cache.ReadBest(best); err != nil {
			t.Fatal(err)
		}
		for i, id := range best {
			row := whole[i*c.Vocab : (i+1)*c.Vocab]
			if row[id] != slices.Max(row) {
				t.Errorf("step %d: token %d is not the most likely", step, id)
			}
		}
		if cache.ReadBest(make([]int32, 3)) == nil || cache.ReadLogits(make([]float32, 3)) == nil {
			t.Error("room of another size passes")
		}
	}
	step := sent[len(sent)-1]
	for i := range step {
		for _, words := range [][]int32{step[:i], append(slices.Clone(step[:i]), step[i:len(step)-1]...)} {
			if other.Obey(words) == nil {
				t.Errorf("%v is obeyed", words)
			}
		}
	}
	for _, words := range [][]int32{{wordStep, 2, 0, 0, 0, 0}, {wordStep, -1, 0, 0, 0, 0}, {wordCache, 1, 1, 1}, {9, 0},
		{wordStep, 0, -1, 0, 1, 0, 1}, {wordStep, 0, 1, 0, 1, 0}, {wordStep, 0, 0, 99},
		append([]int32{wordStep, 0, 0, 5}, step[4:]...)} {
		if other.Obey(words) == nil {
			t.Errorf("%v is obeyed", words)
		}
	}
	cache.Free()
	if other.told[0] != nil || other.told[1] == nil {
		t.Error("the wrong cache is freed")
	}
	if other.Obey([]int32{wordFree, 0}) == nil {
		t.Error("a cache is freed twice")
	}
	fails = true
	for range 2 {
		if err := second.Run(Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{0},
			Want: []int32{0}}); !errors.Is(err, lost) {
			t.Errorf("words that were not sent: %v", err)
		}
		fails = false // what others missed they can never make up
	}
}

// Rows of a step that are outside of what there is are refused; those at the edge are not.
func TestRowBounds(t *testing.T) {
	c := configs(t)["diff/base"] // context 16, vocabulary 19
	m := newModel(t, ref.New(), c)
	cache := m.NewCache(12, 2, 2, 9) // 18 positions, two more than the context
	for i := range 9 {
		cache.Assign(1, i, int32(i))
	}
	good := func() Rows {
		return Rows{IDs: []int32{18, 0}, Slots: []int32{1, 1}, Pos: []int32{14, 15}, Want: []int32{1, 0}}
	}
	if err := cache.Run(good()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(r *Rows){
		"empty":             func(r *Rows) { *r = Rows{} },
		"slots":             func(r *Rows) { r.Slots = r.Slots[:1] },
		"positions":         func(r *Rows) { r.Pos = r.Pos[:1] },
		"wanted":            func(r *Rows) { r.Want = []int32{0, 1, 0} },
		"wanted over":       func(r *Rows) { r.Want[0] = 2 },
		"wanted negative":   func(r *Rows) { r.Want[1] = -1 },
		"position over":     func(r *Rows) { r.Pos[1] = 16 },
		"position negative": func(r *Rows) { r.Pos[0] = -1 },
		"slot over":         func(r *Rows) { r.Slots[0] = 2 },
		"slot negative":     func(r *Rows) { r.Slots[1] = -1 },
		"id over":           func(r *Rows) { r.IDs[0] = 19 },
		"id negative":       func(r *Rows) { r.IDs[1] = -1 },
	} {
		r := good()
		change(&r)
		if err := cache.Run(r); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	short := m.NewCache(2, 2, 1, 2) // 4 positions
	short.Assign(0, 0, 0)
	short.Assign(0, 1, 1)
	for pos, want := range map[int32]bool{3: true, 4: false} {
		if err := short.Run(Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{pos},
			Want: []int32{0}}); (err == nil) != want {
			t.Errorf("position %d of 4: %v", pos, err)
		}
	}
}
