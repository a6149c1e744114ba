package data

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const needlePreamble = "There are magic codes hidden in the text below. Remember them.\n"

// Needle is a retrieval prompt: magic codes, each a city and a number, hidden in a haystack, and a question about some
// of them.
//
//	There are magic codes hidden in the text below. Remember them.
//	… The magic code is Oslo 48. … The magic code is Lima 33. …
//	Which magic code begins with Oslo? The magic code is Oslo
//
// and with two queries
//
//	Which magic codes begin with Oslo and Lima? The magic code is Oslo 48. The magic code is Lima 33.
//
// Prompt ends right before the space and the first number: " 48" is then tokenized as in training text, for any
// tokenizer. The answer sentences repeat the needle's wording, and the city is right before its number, so that
// retrieval is matching and copying, which a tiny model can learn in minutes. The haystack is [Prose] unless given.
type Needle struct {
	Prompt    string
	Answers   []string // the queried numbers, in the order asked
	Cities    []string // the queried cities, in the same order
	Spans     [][2]int // byte spans in Prompt of the queried needles' sentences, in the same order
	QuerySpan [2]int   // byte span in Prompt of the question, up to the end
	Depth     float64  // requested position of the first queried needle in the haystack

	OtherCities  []string // needles that are not queried
	OtherNumbers []string
}

// NeedleOptions size a prompt. Zero values mean the defaults.
type NeedleOptions struct {
	Needles  int                                  // numbers hidden; 0: 1
	Queries  int                                  // number of queried ones; 0: 1
	Depth    float64                              // 0 (start) to 1 (end), of the first queried needle; others random
	Bytes    int                                  // approximate length of Prompt, or of its fixed parts; 0: 1024
	Digits   int                                  // of every number; 0: 2
	Haystack func(r *rand.Rand, bytes int) string // text of sentences, at most this many bytes; nil: Prose
}

func (o NeedleOptions) withDefaults() NeedleOptions {
	o.Needles, o.Queries = cmp.Or(o.Needles, 1), cmp.Or(o.Queries, 1)
	o.Bytes, o.Digits = cmp.Or(o.Bytes, 1024), cmp.Or(o.Digits, 2)
	if o.Haystack == nil {
		o.Haystack = Prose
	}
	if o.Needles < 1 || o.Needles > len(cities) || o.Queries < 1 || o.Queries > o.Needles ||
		!(o.Depth >= 0 && o.Depth <= 1) || o.Digits < 1 || o.Digits > 9 {
		// Options come from code; the spec parser checks those that users write.
		panic(fmt.Sprintf("data: needle options: %d needles (want 1 to %d), %d queries (want 1 to needles), depth %v "+
			"(want 0 to 1), %d digits (want 1 to 9)",
			o.Needles, len(cities), o.Queries, o.Depth, o.Digits))
	}
	return o
}

// NewNeedle draws a prompt. Cities and numbers are random, so no answer can be known without reading the prompt.
func NewNeedle(r *rand.Rand, opt NeedleOptions) Needle {
	o := opt.withDefaults()
	names := sample(r, cities, o.Needles)
	nums := numbers(r, o.Needles, o.Digits)
	q := o.Queries
	n := Needle{Cities: names[:q:q], Answers: nums[:q:q], OtherCities: names[q:], OtherNumbers: nums[q:],
		Depth: o.Depth}
	question := "\n" + needleQuestion(n.Cities)
	rest := o.Bytes - len(needlePreamble) - len(question)
	sentences := make([]string, o.Needles)
	for i := range sentences {
		sentences[i] = needleAnswer(names[i]) + " " + nums[i] + "."
		rest -= len(sentences[i]) + 1
	}
	body, spans := hide(r, o.Haystack(r, max(0, rest)), sentences, o.Depth)
	n.Prompt = needlePreamble + body + question
	for _, s := range spans[:q] {
		n.Spans = append(n.Spans, [2]int{s[0] + len(needlePreamble), s[1] + len(needlePreamble)})
	}
	n.QuerySpan = [2]int{len(n.Prompt) - len(question) + 1, len(n.Prompt)}
	return n
}

// needleQuestion asks for the cities' numbers and begins the answer, up to the first number.
func needleQuestion(names []string) string {
	q := fmt.Sprintf("Which magic code begins with %s?", names[0])
	if last := len(names) - 1; last > 0 {
		q = fmt.Sprintf("Which magic codes begin with %s and %s?", strings.Join(names[:last], ", "), names[last])
	}
	return q + " " + needleAnswer(names[0])
}

// needleAnswer is the answer sentence without the number.
func needleAnswer(city string) string { return "The magic code is " + city }

// Completion is the correct continuation of Prompt.
func (n Needle) Completion() string {
	var b strings.Builder
	for i, city := range n.Cities {
		if i > 0 {
			b.WriteString(" " + needleAnswer(city))
		}
		b.WriteString(" " + n.Answers[i] + ".")
	}
	return b.String()
}

// hide inserts sentences between those of hay: the first at the sentence boundary nearest to depth·len(hay), the others
// at random boundaries. It returns each sentence's byte span.
func hide(r *rand.Rand, hay string, sentences []string, depth float64) (string, [][2]int) {
	bounds := boundaries(hay)
	type placed struct {
		which, at int
		tie       float64 // order among sentences at one boundary; depth puts 0 first and 1 last
	}
	order := make([]placed, len(sentences))
	for i := range order {
		order[i] = placed{i, pick(r, bounds), r.Float64()}
	}
	order[0] = placed{0, nearest(bounds, depth*float64(len(hay))), depth}
	slices.SortStableFunc(order, func(x,
		y placed) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.tie, y.tie))
	})
	var b strings.Builder
	spans := make([][2]int, len(sentences))
	from := 0
	for _, p := range order {
		b.WriteString(hay[from:p.at])
		from = p.at
		if b.Len() > 0 && p.at == len(hay) {
			b.WriteByte(' ')
		}
		spans[p.which] = [2]int{b.Len(), b.Len() + len(sentences[p.which])}
		b.WriteString(sentences[p.which])
		if p.at < len(hay) {
			b.WriteByte(' ')
		}
	}
	b.WriteString(hay[from:])
	return b.String(), spans
}

// boundaries are the offsets at which a sentence begins, and the end of the text.
func boundaries(text string) []int {
	out := []int{0}
	for i := 1; i+1 < len(text); i++ {
		if (text[i] == ' ' || text[i] == '\n') && strings.IndexByte(".?!", text[i-1]) >= 0 {
			out = append(out, i+1)
		}
	}
	if len(text) > 0 {
		out = append(out, len(text))
	}
	return out
}

func nearest(bounds []int, at float64) int {
	return slices.MinFunc(bounds, func(x, y int) int {
		return cmp.Compare(max(float64(x)-at, at-float64(x)), max(float64(y)-at, at-float64(y)))
	})
}

// needleDocument is a training document: a prompt, its completion, and single questions about other needles, because
// one answer per document gives little to learn from.
func needleDocument(s *Synthetic, r *rand.Rand, n int) string {
	needles := 1 + r.IntN(s.Needles)
	opt := NeedleOptions{Needles: needles, Queries: 1 + r.IntN(min(s.Queries, needles)), Depth: r.Float64(),
		Digits: s.Digits}
	if r.IntN(4) == 0 {
		opt.Depth = float64(r.IntN(2)) // the ends are evaluated too
	}
	asks := r.IntN(min(s.Asks, needles-opt.Queries+1))
	line := len(needleQuestion([]string{"Santiago"})) + len("\n .") + s.Digits
	completion := opt.Queries * (len(needleAnswer("Santiago")) + len("  .") + s.Digits)
	opt.Bytes = max(1, n-asks*line-completion)
	x := NewNeedle(r, opt)
	var b strings.Builder
	b.WriteString(x.Prompt + x.Completion())
	for i := range asks {
		fmt.Fprintf(&b, "\n%s %s.", needleQuestion(x.OtherCities[i:i+1]), x.OtherNumbers[i])
	}
	return b.String()
}

// MostNeedles is the largest number of needles in a prompt: the number of cities.
func MostNeedles() int { return len(cities) }
