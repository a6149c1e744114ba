package data

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// In every order, skipping rows is taking them: the same batches, positions, epochs and rows left follow, and a
// prefetcher shows what its loader would.
func TestSkipIsTaking(t *testing.T) {
	set := mixedSet(t, []Share{{Weight: 3, Epochs: 2}, {Weight: 1}}, 900, 500)
	const B, T = 2, 7
	for name, open := range map[string]func() *Loader{
		"random": func() *Loader { return NewLoader(split(t, set, Train), B, T, 5) },
		"stream": func() *Loader { return NewStream(split(t, set, Train), B, T, 5) },
		"mixed":  func() *Loader { return NewLoader(mix(t, set), B, T, 5) },
	} {
		taken := open()
		ahead := Prefetch(open())
		for n := range uint64(150) {
			skipped := open()
			skipped.Skip(n * B)
			if !reflect.DeepEqual(skipped.Position(), taken.Position()) ||
				!reflect.DeepEqual(ahead.Position(), taken.Position()) {
				t.Fatalf("%s, batch %d: at %+v and %+v, want %+v", name, n, skipped.Position(), ahead.Position(),
					taken.Position())
			}
			if skipped.Epoch() != taken.Epoch() || skipped.Left() != taken.Left() || ahead.Epoch() != taken.Epoch() {
				t.Fatalf("%s, batch %d: epoch %g, %d rows left; want %g, %d", name, n, skipped.Epoch(), skipped.Left(),
					taken.Epoch(), taken.Left())
			}
			if e := taken.Epochs(nil); !slices.Equal(skipped.Epochs(nil), e) || !slices.Equal(ahead.Epochs(nil), e) {
				t.Fatalf("%s, batch %d: epochs %v, want %v", name, n, skipped.Epochs(nil), e)
			}
			if taken.Left() < B {
				break
			}
			if a, b := next(skipped), next(taken); !a.equal(b) {
				t.Fatalf("%s: batch %d differs", name, n)
			}
			b := batchOf{make([]int32, B*T), make([]int32, B*T), make([]int32, B*T)}
			if err := ahead.Next(b.inputs, b.targets, b.starts); err != nil {
				t.Fatal(err)
			}
		}
		ahead.Close()
	}
}

// The components of a split: their tokens are the split's, their shares sum to 1.
func TestParts(t *testing.T) {
	shares := []Share{{Weight: 3, Epochs: 2}, {Weight: 1}}
	set := mixedSet(t, shares, 900, 500)
	whole := split(t, set, Train)
	if list := whole.Parts(); len(list) != 1 || list[0].Share != 1 || list[0].Tokens != whole.Tokens() ||
		list[0].Epochs != 0 {
		t.Errorf("%+v", list)
	}
	list, tokens, share := mix(t, set).Parts(), int64(0), 0.0
	for i, p := range list {
		tokens, share = tokens+p.Tokens, share+p.Share
		if p.Source != set.Manifest.Sources[i].Name || p.Epochs != shares[i].Epochs ||
			!(math.Abs(p.Share-shares[i].Weight/4) <= 1e-12) {
			t.Errorf("part %d is %+v", i, p)
		}
	}
	if len(list) != 2 || tokens != whole.Tokens() || !(math.Abs(share-1) <= 1e-12) {
		t.Errorf("%+v: %d of %d tokens", list, tokens, whole.Tokens())
	}
	if !set.Has(Train) || set.Has("test") || whole.Name() != Train {
		t.Error("the set has other splits than it was built with")
	}
	for _, bad := range [][]Share{shares[:1], {{Weight: 1}, {Weight: 1}, {Weight: 1}}, {{Weight: 1}, {Weight: -1}},
		{{Weight: 1}, {}}} {
		if _, err := whole.Mix(bad); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}

// A row of Parquet is what it would be in JSON, whichever way its writer wraps lists.
func TestUnwrapped(t *testing.T) {
	for _, x := range []struct{ in, want any }{
		{[]byte("text"), "text"}, {"text", "text"}, {int64(3), "3"}, {2.0, "2.0"}, {2.5, "2.5"},
		{1e300, "1e+300"}, {nil, nil},
		{map[string]any{"list": []any{map[string]any{"element": []byte("a")}, map[string]any{"item": int64(1)}, "b"}},
			[]any{"a", "1", "b"}},
		{map[string]any{"list": []any{map[string]any{"element": 1.0, "other": 2.5}}},
			[]any{map[string]any{"element": "1.0", "other": "2.5"}}},
		{map[string]any{"list": []any{"x"}, "other": "y"}, map[string]any{"list": []any{"x"}, "other": "y"}},
		{[]any{[]byte("a"), map[string]any{"k": 3.0}}, []any{"a", map[string]any{"k": "3.0"}}},
	} {
		row, err := plainRow(map[string]any{"v": x.in})
		if err != nil {
			t.Fatal(err)
		}
		if got := printed(row["v"]); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%v became %#v, want %#v", x.in, got, x.want)
		}
	}
}

// printed replaces numbers by their text.
func printed(v any) any {
	switch v := v.(type) {
	case interface{ String() string }:
		return v.String()
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = printed(x)
		}
		return out
	case []any:
		return EachOf(v, printed)
	}
	return v
}

// Long text is cut at its last break, line or space, otherwise between characters; nothing is lost but the separators,
// and no piece is too long or, unless the text ends, too short.
func TestPieces(t *testing.T) {
	for name, x := range map[string]struct{ text, lost string }{
		"ascii": {strings.Repeat("a", 3*textChunk+5), ""}, "two bytes": {strings.Repeat("é", 2*textChunk), ""},
		"three bytes":         {"a" + strings.Repeat("日", textChunk), ""},
		"four bytes":          {strings.Repeat("𝄞", textChunk), ""},
		"four bytes, one off": {"a" + strings.Repeat("𝄞", textChunk), ""},

		"two off":   {"aa" + strings.Repeat("𝄞", textChunk), ""},
		"three off": {"aaa" + strings.Repeat("𝄞", textChunk), ""}, "spaces": {strings.Repeat("word ", textChunk), " "},
		"lines":          {strings.Repeat("some words\n", textChunk/3), "\n"},
		"paragraphs":     {strings.Repeat(strings.Repeat("some words\n", 900)+"\n", 40), "\n"},
		"an early space": {"x " + strings.Repeat("a", 2*textChunk), ""},
		"exactly one":    {strings.Repeat("a", textChunk), ""}, "one more": {strings.Repeat("a", textChunk+1), ""},
	} {
		for _, step := range []int{1 << 30, 40_000} { // all at once, or as it is read
			var got []string
			buf, rest := []byte(nil), []byte(x.text)
			for {
				piece, used := nextPiece(buf, len(rest) == 0)
				if used == 0 && len(rest) == 0 {
					break
				}
				if used == 0 {
					n := min(step, len(rest))
					buf, rest = append(buf, rest[:n]...), rest[n:]
					continue
				}
				got = append(got, string(piece))
				buf = buf[used:]
			}
			if joined := strings.Join(got, x.lost); strings.TrimRight(joined, " \n") != strings.TrimRight(x.text,
				" \n") && x.lost != "\n" || x.lost == "\n" &&
				strings.Join(strings.Fields(strings.Join(got, "\n")),
					" ") != strings.Join(strings.Fields(x.text), " ") {
				t.Errorf("%s: text is lost", name)
			}
			for i, p := range got {
				if !utf8.ValidString(p) || len(p) > textChunk || i < len(got)-1 && len(p) < textChunk/2 {
					t.Errorf("%s: piece %d of %d has %d bytes, valid %v", name, i, len(got), len(p),
						utf8.ValidString(p))
				}
			}
		}
	}
}
