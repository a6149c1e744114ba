package infer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"antiphase/tokenizer"
)

// pieces lists the texts of one request's events.
func pieces(t *testing.T, e *Engine, r Request) (list []string, a answer) {
	t.Helper()
	err := e.Generate(context.Background(), []Request{r}, func(_ int, ev Event) bool {
		a.add(t, ev)
		list = append(list, ev.Text)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, a
}

// The model recites a text byte by byte: characters come out whole, and only once.
func TestTextComesInWholeCharacters(t *testing.T) {
	tok := bytesTokenizer(t)
	const text = "hé!😀 漢"
	e := engine(t, chain(t, newCPU(t), text), tok, Options{})
	got, a := pieces(t, e, Request{IDs: tok.Encode("h"), Sampling: Sampling{}})
	want := []string{"", "é", "!", "", "", "", "😀", " ", "", "", "漢", ""}
	if !slices.Equal(got, want) || a.Reason != ReasonEOS {
		t.Errorf("pieces %q because of %q, want %q", got, a.Reason, want)
	}
	if id := a.IDs[len(a.IDs)-1]; id != 256 {
		t.Errorf("the last id is %d, want the end of text", id)
	}
	// cut inside a character: what cannot be completed is shown as such
	got, a = pieces(t, e, Request{IDs: tok.Encode("h"), Sampling: Sampling{MaxTokens: 5}})
	if a.Text != "é!\uFFFD" || a.Reason != ReasonLength {
		t.Errorf("five bytes give %q because of %q", got, a.Reason)
	}
	for _, p := range got {
		if !utf8.ValidString(p) {
			t.Errorf("piece %q is no UTF-8", p)
		}
	}
}

func TestStopStrings(t *testing.T) {
	tok := bytesTokenizer(t)
	e := engine(t, chain(t, newCPU(t), "abcdefgh😀xyz"), tok, Options{})
	for _, c := range []struct {
		stop   []string
		want   []string
		reason string
	}{
		{[]string{"de"}, []string{"b", "c", "", ""}, ReasonStop},
		{[]string{"def!", "z"}, []string{"b", "c", "", "", "", "defg", "h", "", "", "", "😀", "x", "y", ""}, ReasonStop},
		{[]string{"zzz"}, []string{"b", "c", "d", "e", "f", "g", "h", "", "", "", "😀", "x", "y", "", "z"}, ReasonEOS},
		{[]string{"cdefg", "ef"}, []string{"b", "", "", "", "cd"}, ReasonStop},
		{[]string{"h😀"}, []string{"b", "c", "d", "e", "f", "g", "", "", "", "", ""}, ReasonStop},
		{[]string{"b"}, []string{""}, ReasonStop},
	} {
		got, a := pieces(t, e, Request{IDs: tok.Encode("a"), Sampling: Sampling{Stop: c.stop}})
		if !slices.Equal(got, c.want) || a.Reason != c.reason {
			t.Errorf("stop %q: pieces %q because of %q, want %q because of %q", c.stop, got, a.Reason, c.want, c.reason)
		}
	}
	if s := e.Stats(); s.FreePages != s.Pages {
		t.Errorf("left behind %+v", s)
	}
}

// The answer's text continues from the prompt's: the space before its first word is there.
func TestTextGoesOnFromThePrompt(t *testing.T) {
	space := map[string]any{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}
	raw, err := json.Marshal(map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "normalizer": nil, "pre_tokenizer": space,
		"post_processor": nil, "decoder": space, "added_tokens": []any{},
		"model": map[string]any{"type": "BPE", "vocab": map[string]int{"▁a": 0, "▁b": 1, "▁c": 2},
			"merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	e := engine(t, chain(t, newCPU(t), "\x00\x01\x02"), tok, Options{})
	if got := generate(t, e, Request{IDs: []int32{0}, Sampling: Sampling{MaxTokens: 2}})[0]; got.Text != " b c" {
		t.Errorf("text is %q, want %q", got.Text, " b c")
	}
}

// Whatever pieces a text comes in, the output is what stands before the stop string that is complete first, and no
// piece ever shows the beginning of one.
func TestStopperProperty(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(word, 1, 3).Draw(t, "stops")
		parts := rapid.SliceOf(word).Draw(t, "parts")
		text := strings.Join(parts, "")
		start, end := len(text), len(text)+1
		for _, w := range stops {
			if i := strings.Index(text, w); i >= 0 && (i+len(w) < end || i+len(w) == end && i < start) {
				start, end = i, i+len(w)
			}
		}
		s := stopper{stops: stops}
		got, hit := "", false
		for _, p := range parts {
			var out string
			out, hit = s.add(p)
			got += out
			if !strings.HasPrefix(text[:start], got) {
				t.Fatalf("showed %q of %q, which ends at %d", got, text, start)
			}
			if hit {
				break
			}
		}
		if got += s.flush(); got != text[:start] || hit != (end <= len(text)) {
			t.Fatalf("%q with stops %q gave %q, hit %v", parts, stops, got, hit)
		}
	})
}

// Of all pairs of stop strings of two letters, in both orders, the one that is complete first counts, and of two that
// are complete together the longer one, however a text is cut in two.
func TestOverlappingStops(t *testing.T) {
	words := []string{""} // all of up to six letters
	for i := 0; len(words[i]) < 6; i++ {
		words = append(words, words[i]+"a", words[i]+"b")
	}
	short := words[1:15] // up to three
	for _, text := range words {
		for _, x := range short {
			for _, y := range short {
				want, stopped := text, false
				for end := 1; end <= len(text) && !stopped; end++ {
					for _, w := range []string{x, y} {
						if strings.HasSuffix(text[:end], w) {
							want, stopped = text[:min(len(want), end-len(w))], true
						}
					}
				}
				for cut := range len(text) + 1 {
					s := stopper{stops: []string{x, y}}
					got, hit := s.add(text[:cut])
					if !hit {
						var more string
						more, hit = s.add(text[cut:])
						got += more
					}
					if got += s.flush(); got != want || hit != stopped {
						t.Fatalf("%q + %q with stops %q and %q gives %q, stopped %v; want %q, %v", text[:cut],
							text[cut:], x, y, got, hit, want, stopped)
					}
				}
			}
		}
	}
}
