package data

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"antiphase/internal/cores"
	"antiphase/internal/fault"
)

// syntheticVersion is part of the fingerprint: raise it whenever any document changes.
const syntheticVersion = 1

// Synthetic generates documents from small grammars: text that a tiny model can learn from on any machine, without a
// download. Document i is a pure function of (options, i), so any part can be generated alone.
//
// Each document is of one kind, drawn by the mix:
//
//	prose   small worlds told in simple sentences: people, places, things, moods, and causes with effects
//	facts   facts stated, then prose, then questions about the facts with answers
//	needle  magic numbers of cities hidden in prose, then questions about them ([NewNeedle] + answers)
//	kv      a list of keys with values in which keys recur
//	shots   many examples of a labelling whose rule is new in each document ([NewShots] + answer)
//	arith   sums, differences, comparisons and number sequences
//
// The spec "synthetic:seed=7,docs=20000,len=512,mix=needle:4+prose:3,needles=6,queries=2,asks=4,digits=2" names the
// fields below (len is Bytes); omitted ones keep the default of [NewSynthetic].
//
// Names, values and rules are drawn for each document, so answers can only come from its own text.
type Synthetic struct {
	Seed    uint64
	Docs    int
	Bytes   int            // the target length is drawn from Bytes/8 to Bytes, as many below the middle octave as above
	Mix     map[string]int // kind → weight
	Needles int            // a needle document hides 1 to Needles numbers
	Queries int            // its first question asks for 1 to Queries of them
	Asks    int            // followed by 0 to Asks-1 single questions about others
	Digits  int            // of numbers in needle and kv documents
}

// NewSynthetic returns the source of the spec "synthetic".
func NewSynthetic() *Synthetic {
	return &Synthetic{Seed: 1, Docs: 1000, Bytes: 1024, Needles: 4, Queries: 2, Asks: 4, Digits: 2,
		Mix: map[string]int{"prose": 3, "facts": 1, "needle": 3, "kv": 1, "shots": 1, "arith": 1}}
}

// generators lists the kinds in the order in which the mix is drawn; each returns about n bytes, rarely more.
var generators = []struct {
	kind string
	make func(s *Synthetic, r *rand.Rand, n int) string
}{
	{"prose", func(_ *Synthetic, r *rand.Rand, n int) string { return Prose(r, n) }},
	{"facts", func(_ *Synthetic, r *rand.Rand, n int) string { return factsDocument(r, n) }},
	{"needle", needleDocument},
	{"kv", func(s *Synthetic, r *rand.Rand, n int) string { return kvDocument(r, n, s.Digits) }},
	{"shots", func(_ *Synthetic, r *rand.Rand, n int) string { return shotsDocument(r, n) }},
	{"arith", func(_ *Synthetic, r *rand.Rand, n int) string { return arithDocument(r, n) }},
}

func kinds() string {
	var names []string
	for _, g := range generators {
		names = append(names, g.kind)
	}
	return strings.Join(names, ", ")
}

// Document returns document i, which depends only on the options and i.
func (s *Synthetic) Document(i int) Document {
	r := rand.New(rand.NewPCG(s.Seed, mix64(uint64(i)+1)))
	total := 0
	for _, g := range generators {
		total += s.Mix[g.kind]
	}
	pick := r.IntN(total)
	for _, g := range generators {
		if pick -= s.Mix[g.kind]; pick < 0 {
			n := int(float64(s.Bytes) * math.Exp2(-3*r.Float64()))
			return Document{Text: g.make(s, r, n), Source: "synthetic/" + g.kind}
		}
	}
	// The weights add up to total, so some generator was picked.
	panic("unreachable: pick is below the sum of weights")
}

// Documents yields documents 0 to Docs-1. All cores generate the next block of them while one is read.
func (s *Synthetic) Documents(ctx context.Context) iter.Seq2[Document, error] {
	most := min(1024, max(1, 16<<20/max(s.Bytes, 1))) // two blocks are in memory
	return func(yield func(Document, error) bool) {
		block := s.begin(0, min(16, most))
		defer func() { block() }() // nothing goes on after the loop
		for i := 0; i < s.Docs; {
			docs := block()
			i += len(docs)
			block = s.begin(i, min(2*len(docs), most))
			for _, d := range docs {
				if err := ctx.Err(); err != nil {
					yield(Document{}, err)
					return
				}
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// begin starts to generate n documents from the first on, or as many as there are. The function it returns waits for
// them.
func (s *Synthetic) begin(first, n int) func() []Document {
	docs := make([]Document, min(n, s.Docs-first))
	done := make(chan struct{})
	go func() {
		defer fault.Guard()()
		defer close(done)
		cores.Each(len(docs), func(i int) { docs[i] = s.Document(first + i) })
	}()
	return func() []Document {
		<-done
		return docs
	}
}

// Name is the complete spec, every option spelled out.
func (s *Synthetic) Name() string {
	var mix []string
	for _, g := range generators {
		if w := s.Mix[g.kind]; w > 0 {
			mix = append(mix, fmt.Sprintf("%s:%d", g.kind, w))
		}
	}
	return fmt.Sprintf("synthetic:seed=%d,docs=%d,len=%d,mix=%s,needles=%d,queries=%d,asks=%d,digits=%d",
		s.Seed, s.Docs, s.Bytes, strings.Join(mix, "+"), s.Needles, s.Queries, s.Asks, s.Digits)
}

// Fingerprint is the name and the version of the generator.
func (s *Synthetic) Fingerprint() (string, error) {
	return fmt.Sprintf("v%d %s", syntheticVersion, s.Name()), nil
}

// parseSynthetic reads "seed=7,docs=20000,len=1024,mix=needle:4+prose:3"; omitted options keep their defaults.
func parseSynthetic(opts string) (*Synthetic, error) {
	s := NewSynthetic()
	ints := map[string]struct {
		to      *int
		low, hi int
	}{
		"docs": {&s.Docs, 1, 1 << 30}, "len": {&s.Bytes, 128, 1 << 24}, "needles": {&s.Needles, 1, len(cities)},
		"queries": {&s.Queries, 1, len(cities)}, "asks": {&s.Asks, 1, len(cities)}, "digits": {&s.Digits, 2, 9},
	}
	for _, opt := range strings.FieldsFunc(opts, func(c rune) bool { return c == ',' }) {
		key, value, _ := strings.Cut(opt, "=")
		var err error
		if f, ok := ints[key]; ok {
			*f.to, err = strconv.Atoi(value)
			if err == nil && (*f.to < f.low || *f.to > f.hi) {
				err = fmt.Errorf("out of range")
			}
			if err != nil {
				err = fmt.Errorf("want a whole number from %d to %d", f.low, f.hi)
			}
		} else if key == "seed" {
			if s.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				err = fmt.Errorf("want a whole number, 0 or more")
			}
		} else if key == "mix" {
			s.Mix, err = parseMix(value)
		} else {
			err = fmt.Errorf("unknown option; want seed, docs, len, mix, needles, queries, asks or digits")
		}
		if err != nil {
			return nil, fmt.Errorf("data: open: synthetic: %q: %w", opt, err)
		}
	}
	return s, nil
}

// parseMix reads "needle:4+prose:3"; a kind without a weight has weight 1, and a kind that is not named does not occur.
func parseMix(value string) (map[string]int, error) {
	mix := map[string]int{}
	for _, part := range strings.Split(value, "+") {
		kind, weight, found := strings.Cut(part, ":")
		if !strings.Contains(", "+kinds()+",", ", "+kind+",") || kind == "" {
			return nil, fmt.Errorf("unknown kind %q; want some of %s, as in needle:4+prose:3", kind, kinds())
		}
		w, err := 1, error(nil)
		if found {
			w, err = strconv.Atoi(weight)
		}
		if err != nil || w < 1 || w > 1e6 {
			return nil, fmt.Errorf("weight %q of kind %s; want a whole number from 1 to 1000000", weight, kind)
		}
		mix[kind] = w
	}
	return mix, nil
}

// pick returns a random element.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// sample returns n different elements in random order.
func sample[T any](r *rand.Rand, list []T, n int) []T {
	out := make([]T, n)
	for i, j := range r.Perm(len(list))[:n] {
		out[i] = list[j]
	}
	return out
}

// number returns a random number of exactly that many digits.
func number(r *rand.Rand, digits int) string {
	low := 1
	for range digits - 1 {
		low *= 10
	}
	return strconv.Itoa(low + r.IntN(9*low))
}

// numbers returns n different numbers of that many digits, or all of them if there are fewer.
func numbers(r *rand.Rand, n, digits int) []string {
	seen := map[string]bool{}
	out := make([]string, 0, n)
	for tries := 0; len(out) < n; tries++ {
		if x := number(r, digits); !seen[x] || tries > 100*n {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}
