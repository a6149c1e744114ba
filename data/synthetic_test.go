package data

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The generator's output is part of what a recipe means. Where this fails on purpose, raise syntheticVersion.
func TestSyntheticIsFixed(t *testing.T) {
	h := sha256.New()
	for i := range 200 {
		d := NewSynthetic().Document(i)
		fmt.Fprintf(h, "%s\n%s\n", d.Source, d.Text)
	}
	const want = "v1 daf69e154166a9ae"
	if got := fmt.Sprintf("v%d %x", syntheticVersion, h.Sum(nil)[:8]); got != want {
		t.Errorf("200 documents hash to %q, want %q", got, want)
	}
}

func TestSyntheticDocumentsStandAlone(t *testing.T) {
	s := open(t, "synthetic:seed=9,docs=60,len=600").(*Synthetic)
	all, kinds := read(t, s)
	if len(all) != 60 {
		t.Fatalf("%d documents, want 60", len(all))
	}
	for i := 59; i >= 0; i-- {
		if d := s.Document(i); d.Text != all[i] || d.Source != kinds[i] {
			t.Fatalf("document %d differs when made alone", i)
		}
	}
	if other, _ := read(t, open(t, "synthetic:seed=10,docs=60,len=600")); slices.Equal(other, all) {
		t.Error("two seeds give the same documents")
	}
	if again := open(t, s.Name()); again.Name() != s.Name() {
		t.Errorf("name %q reads back as %q", s.Name(), again.Name())
	}
}

// Blocks that are generated ahead end where the documents do, are whole after a reader stops, and are few if long.
func TestSyntheticAhead(t *testing.T) {
	for _, docs := range []int{1, 15, 16, 17, 48, 49, 2100} {
		s := open(t, fmt.Sprintf("synthetic:docs=%d,len=128", docs)).(*Synthetic)
		all, _ := read(t, s)
		if len(all) != docs {
			t.Fatalf("%d documents, want %d", len(all), docs)
		}
		for i, text := range all {
			if s.Document(i).Text != text {
				t.Fatalf("document %d of %d is another", i, docs)
			}
		}
	}
	s := open(t, "synthetic:docs=100000000,len=16777216,mix=kv").(*Synthetic)
	for range s.Documents(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range open(t, "synthetic:docs=5000,len=128").Documents(ctx) {
		if n++; n == 40 {
			cancel()
		}
		if err != nil != (n == 41) {
			t.Fatalf("document %d: %v", n, err)
		}
	}
	if n != 41 {
		t.Errorf("%d documents after a cancelled one", n-41)
	}
}

func TestSyntheticMix(t *testing.T) {
	count := map[string]int{}
	_, from := read(t, open(t, "synthetic:docs=2000,len=128,mix=kv:3+arith"))
	for _, kind := range from {
		count[kind]++
	}
	if len(count) != 2 || count["synthetic/kv"] < 1400 || count["synthetic/kv"] > 1600 {
		t.Errorf("kinds %v, want three kv to one arith", count)
	}
}

// Documents keep to their length, wherever it leaves space for the kind's fixed parts.
func TestSyntheticLength(t *testing.T) {
	for _, g := range generators {
		for _, n := range []int{600, 4000} {
			s := NewSynthetic()
			s.Bytes, s.Mix = n, map[string]int{g.kind: 1}
			for i := range 100 {
				text := s.Document(i).Text
				// A kv list has at most 50 keys and shots come in rounds, so these may end early or a little late.
				if len(text) < n/16 || len(text) > n+n/10 || !utf8.ValidString(text) ||
					strings.TrimSpace(text) != text {
					t.Fatalf("%s: document %d has %d bytes, want up to %d:\n%s", g.kind, i, len(text), n, text)
				}
			}
		}
	}
}

var needleSentence = regexp.MustCompile(`The magic code is (\w+) (\d+)\.`)

func TestNeedle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		o := NeedleOptions{Needles: 1 + r.IntN(8), Depth: float64(i%5) / 4, Bytes: 300 + r.IntN(4000),
			Digits: 1 + r.IntN(7)}
		o.Queries = 1 + r.IntN(min(3, o.Needles))
		n := NewNeedle(r, o)
		if len(n.Answers) != o.Queries || len(n.Cities) != o.Queries || len(n.Spans) != o.Queries ||
			len(n.OtherCities) != o.Needles-o.Queries {
			t.Fatalf("%+v: %d answers, %d cities, %d spans", o, len(n.Answers), len(n.Cities), len(n.Spans))
		}
		for j, s := range n.Spans {
			want := fmt.Sprintf("The magic code is %s %s.", n.Cities[j], n.Answers[j])
			if got := n.Prompt[s[0]:s[1]]; got != want {
				t.Fatalf("span %d holds %q, want %q", j, got, want)
			}
			if len(n.Answers[j]) != o.Digits {
				t.Fatalf("answer %q, want %d digits", n.Answers[j], o.Digits)
			}
		}
		found := needleSentence.FindAllStringSubmatch(n.Prompt, -1)
		seen := map[string]bool{}
		for _, f := range found {
			seen[f[1]] = true
		}
		if len(found) != o.Needles || len(seen) != o.Needles {
			t.Fatalf("%d needles of %d cities in the prompt, want %d", len(found), len(seen), o.Needles)
		}
		if n.QuerySpan[1] != len(n.Prompt) || !strings.HasPrefix(n.Prompt[n.QuerySpan[0]:], "Which magic code") ||
			!strings.HasSuffix(n.Prompt, "The magic code is "+n.Cities[0]) {
			t.Fatalf("question %q", n.Prompt[n.QuerySpan[0]:])
		}
	}
}

// Prompts have about the length asked for, and the first queried needle lies where it was asked to lie.
func TestNeedleDepth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		depth := float64(i%5) / 4
		n := NewNeedle(r, NeedleOptions{Needles: 6, Queries: 2, Depth: depth, Bytes: 4000})
		if len(n.Prompt) > 4000 || len(n.Prompt) < 3800 {
			t.Errorf("prompt of %d bytes, want just under 4000", len(n.Prompt))
		}
		body := n.QuerySpan[0] - 1 - len(needlePreamble)
		at := float64(n.Spans[0][0]-len(needlePreamble)) / float64(body)
		if !(math.Abs(at-depth) <= 0.08) { // six needles of some 45 bytes move it
			t.Errorf("needle at depth %.3f, want %.2f", at, depth)
		}
		if depth == 0 && n.Spans[0][0] != len(needlePreamble) || depth == 1 && n.Spans[0][1] != n.QuerySpan[0]-1 {
			t.Errorf("needle at depth %v does not touch the end of the text", depth)
		}
	}
}

func TestNeedleHaystack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	asked := 0
	n := NewNeedle(r, NeedleOptions{Depth: 0.5, Haystack: func(_ *rand.Rand, bytes int) string {
		asked = bytes
		return "One. Two."
	}})
	want := "One. The magic code is " + n.Cities[0] + " " + n.Answers[0] + ". Two."
	if !strings.Contains(n.Prompt, want) || asked < 500 {
		t.Errorf("prompt %q (asked for %d bytes), want %q inside", n.Prompt, asked, want)
	}
	n = NewNeedle(r, NeedleOptions{Bytes: 1, Needles: 3, Queries: 3})
	if got := n.Prompt + n.Completion(); strings.Count(got, "  ") != 0 || !strings.HasSuffix(got, n.Answers[2]+".") {
		t.Errorf("prompt without haystack: %q", got)
	}
}

// A training document is an evaluation prompt with its completion, perhaps with more questions, all answered rightly.
func TestNeedleDocument(t *testing.T) {
	s := NewSynthetic()
	s.Mix, s.Needles = map[string]int{"needle": 1}, 8
	asked := 0
	for i := range 300 {
		text := s.Document(i).Text
		truth := map[string]string{}
		body, questions, _ := strings.Cut(text, "\nWhich magic code")
		for _, m := range needleSentence.FindAllStringSubmatch(body, -1) {
			truth[m[1]] = m[2]
		}
		answers := needleSentence.FindAllStringSubmatch(questions, -1)
		for _, m := range answers {
			if truth[m[1]] != m[2] {
				t.Fatalf("answer %q contradicts %v", m[0], truth)
			}
		}
		if len(answers) == 0 || !strings.HasPrefix(text, needlePreamble) {
			t.Fatalf("no answer in %q", text)
		}
		asked += len(answers)
	}
	if asked < 600 {
		t.Errorf("%d answers in 300 documents, want two and more each", asked)
	}
}

func TestNeedleRefusesWrongOptions(t *testing.T) {
	for _, o := range []NeedleOptions{{Needles: 1000}, {Queries: 2}, {Depth: 1.5}, {Depth: math.NaN()}, {Digits: 20}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", o)
				}
			}()
			NewNeedle(rand.New(rand.NewPCG(1, 1)), o)
		}()
	}
}

// Each document of the kinds with a checkable truth is true.
func TestKVLookups(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		values := map[string]string{}
		again := 0
		for _, line := range strings.Split(kvDocument(r, 500, 3), "\n") {
			key, value, ok := strings.Cut(line, " ")
			if old := values[key]; !ok || old != "" && old != value {
				t.Fatalf("line %q, the value was %q", line, old)
			}
			if values[key] != "" {
				again++
			}
			values[key] = value
		}
		if again < len(values) {
			t.Errorf("%d lines of %d keys come again", again, len(values))
		}
	}
}

func TestFactsAreAnswered(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		text := factsDocument(r, 800)
		lines := strings.Split(text, "\n")
		for _, q := range lines {
			if i := strings.Index(q, "? "); i > 0 && !strings.Contains(q[:i], ".") {
				if !strings.Contains(lines[0], q[i+2:]) {
					t.Fatalf("%q is not among the facts %q", q[i+2:], lines[0])
				}
			}
		}
		if strings.Count(text, "?") < 2 {
			t.Errorf("no questions in %q", text)
		}
	}
}

func TestShotsFollowOneRule(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for i := range 200 {
		classes := 2 + i%5
		s := NewShots(r, ShotOptions{Classes: classes, Bytes: 1500})
		rule := map[int]string{} // category → label
		shots := strings.Split(s.Prompt+" "+s.Answer, "Text: ")[1:]
		for _, shot := range shots {
			text, label, _ := strings.Cut(strings.TrimSpace(shot), "\nLabel: ")
			noun := text[strings.LastIndexByte(text, ' ')+1:]
			c := slices.IndexFunc(categories, func(list []string) bool { return slices.Contains(list, noun) })
			if rule[c] != "" && rule[c] != label || !slices.Contains(s.Labels, label) {
				t.Fatalf("%q is labelled %q, the rule is %v", text, label, rule)
			}
			rule[c] = label
		}
		if len(rule) != classes || len(shots) < 2*classes || len(s.Prompt) > 1500 {
			t.Fatalf("%d classes in %d shots of %d bytes, want %d", len(rule), len(shots), len(s.Prompt), classes)
		}
	}
}

// Categories must not share a noun, else a rule would contradict itself.
func TestWordListsAreSets(t *testing.T) {
	for name, list := range map[string][]string{"cities": cities, "people": append(slices.Clone(women), men...),
		"places": places, "things": things, "labels": labels, "nouns": slices.Concat(categories...)} {
		seen := map[string]bool{}
		for _, w := range list {
			if seen[w] {
				t.Errorf("%s lists %q twice", name, w)
			}
			seen[w] = true
		}
	}
}

func TestArithIsRight(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	equation := regexp.MustCompile(`^(\d+) ([+-]) (\d+) = (\d+)$`)
	seen := 0
	for range 500 {
		m := equation.FindStringSubmatch(arithLine(r))
		if m == nil {
			continue
		}
		seen++
		x, y, z := must(strconv.Atoi(m[1])), must(strconv.Atoi(m[3])), must(strconv.Atoi(m[4]))
		if m[2] == "-" {
			y = -y
		}
		if x+y != z {
			t.Errorf("%q is wrong", m[0])
		}
	}
	if seen < 150 {
		t.Errorf("%d equations in 500 lines", seen)
	}
}

// What a story recalls is what it told: "Where was X? X was in the P." agrees with the last place told of X.
func TestProseKeepsToItsWorld(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	moved := regexp.MustCompile(
		`(\w+) (?:walked from the \w+ to the|was in the|stayed in the|looked for the \w+ and found it in the) (\w+)`)
	recalled := regexp.MustCompile(`Where was (\w+)\? \w+ was in the (\w+)`)
	checked := 0
	for _, story := range strings.Split(Prose(r, 200000), "\n") {
		place := map[string]string{}
		for _, m := range regexp.MustCompile(`[^.]+\.`).FindAllString(story, -1) {
			if q := recalled.FindStringSubmatch(m); q != nil {
				if checked++; place[q[1]] != q[2] {
					t.Fatalf("%q, but %s was last told to be in the %s", m, q[1], place[q[1]])
				}
			} else if q := moved.FindStringSubmatch(m); q != nil {
				place[q[1]] = q[2]
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d recalls", checked)
	}
}
