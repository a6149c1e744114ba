package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type batchOf struct{ inputs, targets, starts []int32 }

func next(l *Loader) batchOf {
	n := l.b * l.t
	b := batchOf{make([]int32, n), make([]int32, n), make([]int32, n)}
	l.Next(b.inputs, b.targets, b.starts)
	return b
}

func (b batchOf) equal(c batchOf) bool {
	return slices.Equal(b.inputs, c.inputs) && slices.Equal(b.targets, c.targets) && slices.Equal(b.starts, c.starts)
}

// flat is what the loader must produce, made the slow way: documents whole, in the epoch's order.
type flat struct {
	tokens []int32
	begin  []int // begin[i] is where the document of token i begins
}

func streamOf(sp *Split, seed uint64, epochs int) (s flat) {
	for e := range epochs {
		p := newPermutation(sp.docs(), seed, uint64(e))
		for i := range sp.docs() {
			at := len(s.tokens)
			s.tokens = sp.Document(s.tokens, int64(p.at(i)))
			for range len(s.tokens) - at {
				s.begin = append(s.begin, at)
			}
		}
	}
	return s
}

func TestStreamPacks(t *testing.T) {
	const B, T, seed = 3, 17, 5
	for _, enc := range []byteEncoder{narrow, wide, noEOS} {
		sp := split(t, buildSet(t, randomTexts(60, 40, 1), enc, BuildOptions{ShardTokens: 300}), Train)
		if len(sp.shards) < 3 {
			t.Fatalf("%d shards, the test wants several", len(sp.shards))
		}
		want := streamOf(sp, seed, 3)
		l := NewStream(sp, B, T, seed)
		for at := 0; at+B*T < len(want.tokens); {
			b := next(l)
			for i := range b.inputs {
				row := at - i%T
				target := want.tokens[at+1]
				if enc.eos < 0 && want.begin[at+1] == at+1 {
					target = -1
				}
				start := max(0, want.begin[at]-row)
				if start > 0 && enc.eos >= 0 { // the end-of-text id before a document is its beginning
					start--
				}
				if b.inputs[i] != want.tokens[at] || b.targets[i] != target || int(b.starts[i]) != start {
					t.Fatalf("%s, stream token %d: input %d target %d start %d, want %d %d %d", enc.Hash(), at,
						b.inputs[i], b.targets[i], b.starts[i], want.tokens[at], target, start)
				}
				at++
			}
		}
	}
}

// One epoch holds every document exactly once, each with its end-of-text id.
func TestEpochHoldsEveryDocumentOnce(t *testing.T) {
	src := randomTexts(50, 30, 2)
	sp := split(t, buildSet(t, src, narrow, BuildOptions{}), Train)
	l := NewStream(sp, 1, 1, 9)
	for range 3 {
		var text []byte
		var got []string
		for range sp.Tokens() {
			id := next(l).inputs[0]
			if id == narrow.eos {
				got, text = append(got, string(text)), nil
			} else {
				text = append(text, byte(id))
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(src.docs))
		if !slices.Equal(got, want) {
			t.Fatalf("epoch holds %d documents, want the %d of the source", len(got), len(want))
		}
	}
	if e := l.Epoch(); e != 3 {
		t.Errorf("Epoch() = %v after three passes", e)
	}
}

func TestStreamResumes(t *testing.T) {
	const B, T, seed = 2, 13, 11
	for _, docs := range []int{1, 2, 25} {
		sp := split(t, buildSet(t, randomTexts(docs, 40, 3), narrow, BuildOptions{ShardTokens: 200}), Train)
		steps := 3*int(sp.Tokens())/(B*T) + 2 // over three epoch edges
		l := NewStream(sp, B, T, seed)
		var positions []Position
		var epochs []float64
		var batches []batchOf
		for range steps {
			positions, epochs = append(positions, jsonTrip(t, l.Position())), append(epochs, l.Epoch())
			batches = append(batches, next(l))
		}
		reused := NewStream(sp, B, T, seed)
		for i := steps - 1; i >= 0; i-- {
			fresh := NewStream(sp, B, T, seed)
			for _, l := range []*Loader{fresh, reused} {
				if err := l.Seek(positions[i]); err != nil {
					t.Fatal(err)
				}
				if l.Epoch() != epochs[i] || !reflect.DeepEqual(l.Position(), positions[i]) {
					t.Fatalf("step %d: stands at %v (%v), want %v (%v)", i, l.Position(), l.Epoch(),
						positions[i], epochs[i])
				}
				for j := i; j < min(i+3, steps); j++ {
					if !next(l).equal(batches[j]) {
						t.Fatalf("%d documents: batch %d after seeking to %d differs", docs, j, i)
					}
				}
			}
		}
	}
}

func jsonTrip(t *testing.T, p Position) (q Position) {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestStreamMicroBatches(t *testing.T) { microBatches(t, NewStream) }

// microBatches: micro-batches of any size hold the rows of one big batch.
func microBatches(t *testing.T, loader func(sp *Split, b, t int, seed uint64) *Loader) {
	t.Helper()
	sp := split(t, buildSet(t, randomTexts(30, 50, 4), narrow, BuildOptions{}), Train)
	big := next(loader(sp, 12, 10, 1))
	for _, B := range []int{1, 2, 3, 4, 6} {
		l := loader(sp, B, 10, 1)
		var got batchOf
		for range 12 / B {
			b := next(l)
			got.inputs = append(got.inputs, b.inputs...)
			got.targets = append(got.targets, b.targets...)
			got.starts = append(got.starts, b.starts...)
		}
		if !got.equal(big) {
			t.Errorf("%d batches of %d rows differ from one of 12", 12/B, B)
		}
	}
}

func TestStreamShuffles(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(40, 20, 5), narrow, BuildOptions{}), Train)
	n := int(sp.Tokens())
	l := NewStream(sp, 1, n, 1)
	first, second := next(l), next(l)
	if slices.Equal(first.inputs, second.inputs) {
		t.Error("two epochs have one order")
	}
	if slices.Equal(first.inputs, next(NewStream(sp, 1, n, 2)).inputs) {
		t.Error("two seeds have one order")
	}
}

func TestStreamSeekRefuses(t *testing.T) {
	src := randomTexts(40, 20, 6)
	set := buildSet(t, src, narrow, BuildOptions{HeldOut: 0.3})
	l := NewStream(split(t, set, Train), 2, 8, 1)
	seekRefuses(t, l, map[string]badPosition{
		"dataset": {func(p *Position) { p.Dataset = "0123456789abcdef" }, "data set"},
		"split":   {func(p *Position) { p.Split = Valid }, "split"},
		"seed":    {func(p *Position) { p.Seed++ }, "seed"},
		"index":   {func(p *Position) { p.Index = uint64(l.split.Docs()) }, "index"},
		"offset":  {func(p *Position) { p.Offset = 1 << 40 }, "offset"},
		"epoch":   {func(p *Position) { p.Epoch = 1 << 63 }, "epoch"},
		"tokens":  {func(p *Position) { p.Tokens = 1 << 40 }, "tokens"},
		"order":   {func(p *Position) { p.Order, p.T, p.Rows = OrderRandom, 8, []uint64{1} }, "data.order=random"},
		"few":     {func(p *Position) { p.Index, p.Offset, p.Tokens = 5, 0, 4 }, "tokens"},
	})
}

func TestStreamDoesNotAllocate(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(40, 30, 7), narrow, BuildOptions{ShardTokens: 200}), Train)
	l := NewStream(sp, 4, 64, 1)
	allocatesNothing(t, l)
}

func TestNextRefusesWrongLengths(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(4, 30, 8), narrow, BuildOptions{}), Train)
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "2*8 = 16") {
			t.Errorf("panic %v, want one with the shapes", p)
		}
	}()
	NewStream(sp, 2, 8, 1).Next(make([]int32, 16), make([]int32, 16), make([]int32, 15))
}

// The stream is the one that runs have been trained on since the first release: 100 batches of it, hashed then.
func TestStreamStaysAsItWas(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(60, 40, 1), narrow, BuildOptions{ShardTokens: 300}), Train)
	l := NewStream(sp, 3, 17, 5)
	h := sha256.New()
	for range 100 {
		b := next(l)
		for _, x := range [][]int32{b.inputs, b.targets, b.starts} {
			must(0, binary.Write(h, binary.LittleEndian, x))
		}
	}
	const want = "3669dea4799e4b143f2eaa14664a328a64c3a1e5090c340d6d66b7126db5a94f"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("hash %s, was %s", got, want)
	}
	old := `{"dataset":"88789b96fc748bbe5189c1c717bc90ddaa3c9fa43dcf3d026271995a798dd53c","split":"train","seed":5,"epoch":4,"index":7,"offset":34,"tokens":148}`
	var p Position
	must(0, json.Unmarshal([]byte(old), &p))
	if !reflect.DeepEqual(p, l.Position()) {
		t.Errorf("position %+v, was %+v", l.Position(), p)
	}
}
