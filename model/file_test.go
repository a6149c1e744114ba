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

// leading is a model that leads another, with two caches that both have.
type leading struct {
	lead, other   *Model
	cache, second *Cache
	sent          [][]int32
	fault         error // of sending
}

func newLeading(t *testing.T) *leading {
	c := configs(t)["diff/base"]
	l := &leading{lead: newModel(t, ref.New(), c), other: newModel(t, ref.New(), c)}
	l.lead.Lead(func(words []int32) error {
		if l.fault != nil {
			return l.fault
		}
		l.sent = append(l.sent, slices.Clone(words))
		return l.other.Obey(words)
	})
	l.cache, l.second = l.lead.NewCache(4, 2, 2, 2), l.lead.NewCache(1, 2, 1, 1)
	for i, page := range []int32{2, 0} {
		l.cache.Assign(1, i, page)
	}
	l.second.Assign(0, 0, 0)
	l.cache.Commit()
	return l
}

// leadSteps are a prompt and the step behind it.
var leadSteps = []Rows{
	{IDs: []int32{3, 4, 5}, Slots: []int32{1, 1, 1}, Pos: []int32{0, 1, 2}, Want: []int32{0, 2}},
	{IDs: []int32{6}, Slots: []int32{1}, Pos: []int32{3}, Want: []int32{0}},
}

// A model that obeys has the logits of the one that leads.
func TestLeadAndObey(t *testing.T) {
	l := newLeading(t)
	vocab := l.lead.Config.Vocab
	if err := l.lead.Score(&Batch{B: 1, T: 1, IDs: []int32{1}, Targets: []int32{1}}); !errors.Is(err, ErrParts) {
		t.Errorf("a pass over a batch: %v", err)
	}
	logits := func(c *Cache, n int) []float32 {
		y := make([]float32, n*vocab)
		if err := c.ReadLogits(y); err != nil {
			t.Fatal(err)
		}
		return y
	}
	for step, r := range leadSteps {
		if err := l.cache.Run(r); err != nil {
			t.Fatal(err)
		}
		whole := logits(l.cache, len(r.Want))
		if got := logits(l.other.told[0], len(r.Want)); !slices.Equal(got, whole) {
			t.Errorf("step %d: logits differ", step)
		}
		best := make([]int32, len(r.Want))
		if err := l.cache.ReadBest(best); err != nil {
			t.Fatal(err)
		}
		for i, id := range best {
			row := whole[i*vocab : (i+1)*vocab]
			if row[id] != slices.Max(row) {
				t.Errorf("step %d: token %d is not the most likely", step, id)
			}
		}
		if l.cache.ReadBest(make([]int32, 3)) == nil || l.cache.ReadLogits(make([]float32, 3)) == nil {
			t.Error("room of another size passes")
		}
	}
}

// Words that no leader sends are refused.
func TestObeyRefuses(t *testing.T) {
	l := newLeading(t)
	for _, r := range leadSteps {
		if err := l.cache.Run(r); err != nil {
			t.Fatal(err)
		}
	}
	step := l.sent[len(l.sent)-1]
	for i := range step {
		for _, words := range [][]int32{step[:i], append(slices.Clone(step[:i]), step[i:len(step)-1]...)} {
			if l.other.Obey(words) == nil {
				t.Errorf("%v is obeyed", words)
			}
		}
	}
	for _, words := range [][]int32{{wordStep, 2, 0, 0, 0, 0}, {wordStep, -1, 0, 0, 0, 0}, {wordCache, 1, 1, 1}, {9, 0},
		{wordStep, 0, -1, 0, 1, 0, 1}, {wordStep, 0, 1, 0, 1, 0}, {wordStep, 0, 0, 99},
		append([]int32{wordStep, 0, 0, 5}, step[4:]...)} {
		if l.other.Obey(words) == nil {
			t.Errorf("%v is obeyed", words)
		}
	}
}

// A cache that the leader frees is freed once; after words that were not sent no step runs.
func TestLeadEnds(t *testing.T) {
	l := newLeading(t)
	l.cache.Free()
	if l.other.told[0] != nil || l.other.told[1] == nil {
		t.Error("the wrong cache is freed")
	}
	if l.other.Obey([]int32{wordFree, 0}) == nil {
		t.Error("a cache is freed twice")
	}
	lost := errors.New("lost")
	l.fault = lost
	for range 2 {
		if err := l.second.Run(Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{0},
			Want: []int32{0}}); !errors.Is(err, lost) {
			t.Errorf("words that were not sent: %v", err)
		}
		l.fault = nil // what others missed they can never make up
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
