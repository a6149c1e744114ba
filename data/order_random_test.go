package data

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
)

// repeated is a component's tokens in stored order, made the slow way, several times over.
func repeated(sp *Split, times int) (s flat) {
	for range times {
		for i := range sp.Docs() {
			at := len(s.tokens)
			s.tokens = sp.Document(s.tokens, i)
			for range len(s.tokens) - at {
				s.begin = append(s.begin, at)
			}
		}
	}
	return s
}

// rowAt is row k as it must be, cut out of the repetition.
func (s *flat) rowAt(k, T int, eos bool) batchOf {
	b := batchOf{make([]int32, T), make([]int32, T), make([]int32, T)}
	for i := range T {
		at := k*T + i
		b.inputs[i], b.targets[i] = s.tokens[at], s.tokens[at+1]
		if !eos && s.begin[at+1] == at+1 {
			b.targets[i] = -1
		}
		b.starts[i] = int32(max(0, s.begin[at]-k*T))
		if b.starts[i] > 0 && eos {
			b.starts[i]--
		}
	}
	return b
}

// Components of equal size are visited each in an order of its own.
func TestComponentsHaveTheirOwnOrder(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(60, 40, 1), narrow, BuildOptions{}), Train)
	order := func(seed, component uint64) (at []uint64) {
		p := part{component: sp.parts[0], limit: math.MaxUint64}
		for range 30 {
			at = append(at, p.place(17, seed, component))
			p.drawn++
		}
		return at
	}
	for i, a := range [][2]uint64{{5, 0}, {5, 1}, {5, 2}, {6, 0}} {
		for k, b := range [][2]uint64{{5, 0}, {5, 1}, {5, 2}, {6, 0}} {
			if slices.Equal(order(a[0], a[1]), order(b[0], b[1])) != (i == k) {
				t.Errorf("seed and component %v and %v: equal orders should be %v", a, b, i == k)
			}
		}
	}
}

// Over an epoch every row occurs once, and what it holds is cut out of the repeated stream; each epoch is cut elsewhere
// and has its own order.
func TestRandomTakesEveryRowOnce(t *testing.T) {
	const T, epochs = 17, 4
	for _, enc := range []byteEncoder{narrow, wide, noEOS} {
		sp := split(t, buildSet(t, randomTexts(60, 40, 1), enc, BuildOptions{ShardTokens: 300}), Train)
		n := int(sp.Tokens())
		if len(sp.shards) < 3 || n%T == 0 {
			t.Fatalf("%d shards, %d tokens: the test wants several, and a tail", len(sp.shards), n)
		}
		want := repeated(sp, epochs+1)
		l := NewLoader(sp, 1, T, 5)
		var last []int
		for e := range epochs {
			first, end := e*n/T, (e+1)*n/T
			byContent := map[string][]int{}
			for k := first; k < end; k++ {
				key := fmt.Sprint(want.rowAt(k, T, enc.eos >= 0))
				byContent[key] = append(byContent[key], k)
			}
			var order []int
			for range end - first {
				key := fmt.Sprint(next(l))
				if len(byContent[key]) == 0 {
					t.Fatalf("%s, epoch %d: a row that is none of the epoch's, or was there before", enc.Hash(), e)
				}
				order = append(order, byContent[key][0]-first)
				byContent[key] = byContent[key][1:]
			}
			if slices.IsSorted(order) || slices.Equal(order, last) {
				t.Errorf("%s, epoch %d: order %v, the one before %v", enc.Hash(), e, order, last)
			}
			last = order
		}
		if got, want := l.Epoch(), float64(epochs); !(math.Abs(got-want) <= float64(T)/float64(n)) {
			t.Errorf("Epoch() = %v after %v passes", got, want)
		}
	}
}

// A component of less than a row repeats within it.
func TestRandomRowsOfShortSets(t *testing.T) {
	sp := split(t, buildSet(t, texts{docs: []string{"abc", "de"}}, narrow, BuildOptions{}), Train)
	const T = 16
	want := repeated(sp, 30)
	l := NewLoader(sp, 1, T, 1)
	for k := range 12 { // an epoch has no row or one
		if got := next(l); !got.equal(want.rowAt(k, T, true)) {
			t.Fatalf("row %d: %v, want %v", k, got, want.rowAt(k, T, true))
		}
	}
}

// The share of neighbours in a batch that come from one document equals chance: with r_d rows beginning in document d,
// a pair drawn without replacement has probability Σ r_d(r_d−1) / R(R−1). Pairs of a whole epoch, many epochs: a
// binomial count to good accuracy. The stream is what the test must be able to tell apart.
func TestNeighboursAreAChanceMatter(t *testing.T) {
	const T, epochs = 8, 60
	var src texts
	for i := range 40 {
		src.docs = append(src.docs, strings.Repeat(string(rune('A'+i)), 100+40*i)) // every document has its own letter
	}
	sp := split(t, buildSet(t, src, narrow, BuildOptions{}), Train)
	score := func(l *Loader) (z float64) {
		var same, mean, variance float64
		for e := range epochs {
			n := int(sp.Tokens())
			rows := (e+1)*n/T - e*n/T
			letters := make([]int32, rows)
			count := map[int32]float64{}
			for i := range letters {
				letters[i] = next(l).inputs[0]
				count[letters[i]]++
			}
			p := 0.0
			for _, r := range count {
				p += r * (r - 1) / float64(rows*(rows-1))
			}
			for i := 0; i+1 < rows; i += 2 {
				if letters[i] == letters[i+1] {
					same++
				}
				mean, variance = mean+p, variance+p*(1-p)
			}
		}
		return (same - mean) / math.Sqrt(variance)
	}
	for seed := range uint64(5) {
		if z := score(NewLoader(sp, 1, T, seed)); !(math.Abs(z) <= 4) {
			t.Errorf("seed %d: neighbours of one document are %.1f standard deviations from chance", seed, z)
		}
	}
	if z := score(NewStream(sp, 1, T, 1)); z < 100 {
		t.Errorf("a stream scores %.1f: the test cannot tell", z)
	}
}

// Seeking to every batch gives the batches that an unbroken pass gives, across epochs.
func TestRandomResumes(t *testing.T) {
	const B, T, seed = 2, 13, 11
	for _, docs := range []int{1, 2, 25} {
		sp := split(t, buildSet(t, randomTexts(docs, 40, 3), narrow, BuildOptions{ShardTokens: 200}), Train)
		resumes(t, sp, B, T, seed, 3*int(sp.Tokens())/(B*T)+2)
	}
}

// resumes checks Seek and Skip against an unbroken pass of this many batches.
func resumes(t *testing.T, sp *Split, B, T int, seed uint64, steps int) {
	t.Helper()
	l := NewLoader(sp, B, T, seed)
	var positions []Position
	var batches []batchOf
	for range steps {
		positions = append(positions, jsonTrip(t, l.Position()))
		batches = append(batches, next(l))
	}
	reused := NewLoader(sp, B, T, seed)
	for i := steps - 1; i >= 0; i-- {
		fresh, skipped := NewLoader(sp, B, T, seed), NewLoader(sp, B, T, seed)
		skipped.Skip(uint64(i * B))
		for _, l := range []*Loader{fresh, reused, skipped} {
			if l != skipped {
				if err := l.Seek(positions[i]); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(l.Position(), positions[i]) {
				t.Fatalf("step %d: stands at %v, want %v", i, l.Position(), positions[i])
			}
			for j := i; j < min(i+3, steps); j++ {
				if !next(l).equal(batches[j]) {
					t.Fatalf("batch %d after going to %d differs", j, i)
				}
			}
		}
	}
}

func TestRandomMicroBatches(t *testing.T) {
	microBatches(t, NewLoader)
}

func TestRandomSeekRefuses(t *testing.T) {
	set := buildSet(t, randomTexts(40, 20, 6), narrow, BuildOptions{HeldOut: 0.3})
	l := NewLoader(split(t, set, Train), 2, 8, 1)
	seekRefuses(t, l, map[string]badPosition{
		"dataset": {func(p *Position) { p.Dataset = "0123456789abcdef" }, "data set"},
		"split":   {func(p *Position) { p.Split = Valid }, "split"},
		"seed":    {func(p *Position) { p.Seed++ }, "seed"},
		"stream":  {func(p *Position) { p.Order = "" }, "data.order=stream"},
		"order":   {func(p *Position) { p.Order = "sorted" }, "sorted"},
		"length":  {func(p *Position) { p.T = 16 }, "train.seq_len=16"},
		"count":   {func(p *Position) { p.Rows = []uint64{1, 1} }, "2 sources"},
		"mixture": {func(p *Position) { p.Mixture = []Share{{Weight: 0.7}, {Weight: 0.3, Epochs: 2}} },
			"weights 0.7, 0.3 (at most 2 epochs)"},
		"rows": {func(p *Position) { p.Rows = []uint64{1 << 62} }, "rows of source"},
	})
}

func TestRandomDoesNotAllocate(t *testing.T) {
	sp := split(t, buildSet(t, randomTexts(40, 30, 7), narrow, BuildOptions{ShardTokens: 200}), Train)
	l := NewLoader(sp, 4, 64, 1)
	allocatesNothing(t, l)
}

// sparseSplit is a split of that many tokens whose shards are holes: every id is 0.
func sparseSplit(t *testing.T, docs, perDoc uint64) *Split {
	t.Helper()
	h := shardHeader{width: 2, vocab: 257, docs: docs, tokens: docs * perDoc}
	h.indexOffset = (headerSize + 2*h.tokens + 7) &^ 7
	path := filepath.Join(t.TempDir(), "big.bin")
	f := must(os.Create(path))
	defer f.Close()
	index := make([]byte, 0, 8*(docs+1))
	for i := range docs + 1 {
		index = le.AppendUint64(index, i*perDoc)
	}
	h.indexCRC = crc(index)
	must(f.WriteAt(index, int64(h.indexOffset)))
	must(f.WriteAt(h.encode(), 0))
	sh, err := openShard(vfs.OS{}, path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sh.Close() })
	shards := []*Shard{sh, sh, sh}
	return &Split{name: Train, hash: "x", eos: ptr(int32(256)), shards: shards,
		parts: []component{newComponent("all", true, shards)}}
}

// What a loader allocates does not depend on the corpus: 12 kB and 12 GB of tokens, described by a sparse file.
func TestLoaderMemoryDoesNotGrow(t *testing.T) {
	if runtime.GOOS == "windows" || math.MaxInt == math.MaxInt32 {
		t.Skip("needs sparse files and 64-bit addresses")
	}
	took := func(sp *Split) uint64 {
		const B, T = 8, 512
		b := batchOf{make([]int32, B*T), make([]int32, B*T), make([]int32, B*T)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := NewLoader(sp, B, T, 1)
		for range 40 {
			l.Next(b.inputs, b.targets, b.starts)
		}
		if err := l.Seek(l.Position()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := sparseSplit(t, 2, 1000), sparseSplit(t, 20000, 100000)
	if n := large.parts[0].tokens(); 2*n < 10e9 {
		t.Fatalf("%d tokens", n)
	}
	a, b := took(small), took(large)
	if b > a+4096 {
		t.Errorf("%d bytes for 12 kB of tokens, %d for 12 GB", a, b)
	}
}
