package grammar

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// follow reads a text with a matcher of single bytes (id of byte b is b+1) and reports whether it was allowed
// throughout.
func follow(m *Matcher, text string) bool {
	logits := make([]float32, m.v.size)
	for i := range len(text) {
		clear(logits)
		m.Mask(logits)
		id := int32(text[i]) + 1
		if math.IsInf(float64(logits[id]), -1) {
			return false
		}
		m.Accept(id)
	}
	return true
}

// A text in progress goes on as it would have if the grammar drops its cached states for another one meanwhile.
func TestMatcherSurvivesReset(t *testing.T) {
	const whole = `[[[1,[2]],{"a":[[3]]}],"x"]`
	for cut := range len(whole) {
		g := compiled(t, `{"type":"array"}`)
		v := words()
		m := g.NewMatcher(v)
		if !follow(m, whole[:cut]) {
			t.Fatalf("%s is refused", whole[:cut])
		}
		g.mu.Lock()
		g.reset()
		g.mu.Unlock()
		if other := g.NewMatcher(v); !follow(other, `[{"b":[]}`) {
			t.Fatal("another text is refused")
		}
		if !follow(m, whole[cut:]) {
			t.Fatalf("%s is refused after a reset at %d", whole, cut)
		}
		if m2 := g.NewMatcher(v); follow(m2, whole+"]") {
			t.Error("one bracket too many is allowed")
		}
	}
}

// A grammar that has met more states than it caches starts anew, and stays small.
func TestManyStates(t *testing.T) {
	g := compiled(t, `{"type":"string","maxLength":1100}`)
	v := words()
	text := `"` + strings.Repeat("é", 1100) // more than 2048 states
	small := g.Size()
	for range 3 {
		m := g.NewMatcher(v)
		for i := range len(text) {
			m.Accept(int32(text[i]) + 1)
		}
		if size := g.Size(); size < small || size > 32<<20 {
			t.Errorf("%d bytes, %d at first", size, small)
		}
		if follow(m, "x") || !follow(m, `"`) {
			t.Error("1100 characters are not the longest text")
		}
		if n := len(g.cache.states); n > maxStates {
			t.Errorf("%d states", n)
		}
	}
	full := g.Size()
	if g.NewMatcher(v); g.Size() >= full/10 {
		t.Errorf("%d bytes after %d: nothing was dropped", g.Size(), full)
	}
}

// The mask allows a token exactly if its bytes can be read one by one, and an end exactly after a whole text.
func TestMaskIsTheTokens(t *testing.T) {
	list := [][]byte{nil}
	for b := range 256 {
		list = append(list, []byte{byte(b)})
	}
	// Tokens that are prefixes of each other, several with the same bytes, a second end, and one without bytes.
	for _, w := range []string{`{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"b"`, `{}`, `{}`, `[`, `[[`, `[[]`, `[]`,
		`"a":1}`, `1}`, `12`, `1.5`, ``, `end`, `}`, `,"b`} {
		list = append(list, []byte(w))
	}
	ends := []int32{0, int32(len(list) - 3), 9999}
	v := NewVocabulary(list, ends)
	r := rand.New(rand.NewPCG(3, 4))
	for _, schema := range schemas {
		g := compiled(t, schema)
		m := g.NewMatcher(v)
		for n := range 40 {
			logits := make([]float32, len(list)+5)
			m.Mask(logits)
			var allowed []int32
			for id := range logits {
				want := false
				switch {
				case slices.Contains(ends, int32(id)):
					want = m.state.accept
				case id < len(list) && len(list[id]) > 0:
					s := m.state
					for _, b := range list[id] {
						if s == nil {
							break
						}
						s = g.step(s, b)
					}
					want = s != nil
				}
				if got := !math.IsInf(float64(logits[id]), -1); got != want {
					t.Fatalf("%s: token %d is allowed: %v", schema, id, got)
				}
				if want {
					allowed = append(allowed, int32(id))
				}
			}
			if n == 39 || len(allowed) == 0 || m.Accept(allowed[r.IntN(len(allowed))]) {
				break
			}
		}
	}
	for _, id := range []int32{-1, int32(len(list)), 0, int32(len(list) - 4)} {
		if _, ok := v.find(id); ok {
			t.Errorf("id %d has a place", id)
		}
	}
}

// A model may have more logits than the vocabulary has tokens, which are forbidden all; on both sides of a word's 64
// bits.
func TestMaskBeyondTheVocabulary(t *testing.T) {
	for _, size := range []int{62, 63, 64, 65, 127, 128, 129} {
		list := make([][]byte, size)
		list[0], list[size-1] = []byte("1"), []byte("1")
		ends := []int32{int32(size - 2), int32(size), int32(size + 1)} // one of them in the vocabulary
		m := compiled(t, `{"type":"integer"}`).NewMatcher(NewVocabulary(list, ends))
		for n := range 3 {
			logits := make([]float32, size+130)
			m.Mask(logits)
			for id, l := range logits {
				want := id == 0 || id == size-1 || n > 0 && id == size-2
				if allowed := !math.IsInf(float64(l), -1); allowed != want {
					t.Errorf("of %d tokens id %d is allowed after %d: %v", size, id, n, allowed)
				}
			}
			if m.Accept(0) {
				t.Error("a number may go on")
			}
		}
	}
}

// Missing names the first byte of UTF-8 texts without a token of its own.
func TestMissing(t *testing.T) {
	var list [][]byte
	for b := range 256 {
		list = append(list, []byte{byte(b)})
	}
	without := func(b int) *Vocabulary {
		l := slices.Clone(list)
		l[b] = []byte{byte(b), 'x'} // only as part of a longer one
		return NewVocabulary(l, nil)
	}
	if got := NewVocabulary(list, nil).Missing(); got != -1 {
		t.Errorf("%#x is missing of all", got)
	}
	for b := range 256 {
		want := b
		if b < 0x20 || b == 0xc0 || b == 0xc1 || b >= 0xf5 {
			want = -1
		}
		if got := without(b).Missing(); got != want {
			t.Errorf("without %#x: %#x", b, got)
		}
	}
	if got := NewVocabulary(list, []int32{'a'}).Missing(); got != 'a' {
		t.Errorf("the end is not a token of a text: %#x", got)
	}
}
