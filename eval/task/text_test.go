package task

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
)

// A piece of text is cut to the length asked for and at most two tokens more, at whole characters, whatever a token is.
func TestTrimmed(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	text := ""
	for range 400 {
		text += []string{"a", "é", "漢字", "word ", "🙂 "}[g.IntN(5)]
	}
	for name, count := range map[string]func(string) int{
		"bytes": func(s string) int { return len(s) + 1 },
		"words": func(s string) int { return len(strings.Fields(s)) + 1 },
		"late":  func(s string) int { return max(0, len(s)-700)/3 + 1 }, // tokens only at the end
	} {
		p := &eval.Plan{Count: count}
		for _, length := range []int{1, 7, 50, 1000000} {
			got := trimmed(p, text, length)
			n := count(got)
			if !strings.HasPrefix(text, got) || strings.ToValidUTF8(got, "") != got {
				t.Fatalf("%s, %d: cut inside a character", name, length)
			}
			// A character of four bytes.
			if length == 1000000 && got != text || length < 1000000 && (n <= length || n > length+5) {
				t.Errorf("%s: %d tokens for %d", name, n, length)
			}
		}
	}
}

// Of many documents the first 4096 are read.
func TestMostDocuments(t *testing.T) {
	dir := t.TempDir()
	rows := make([]string, mostDocuments+5)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"text": "%d"}`, i)
	}
	writeSet(t, dir, "many", rows...)
	opt := eval.Options{}
	j := prepared(t, lookup(t, "lm"), opt, 64)
	docs, err := documents(t.Context(), j.Plan, filepath.Join(dir, "many.jsonl"))
	if err != nil || len(docs) != 4096 || docs[0] != "0" || docs[4095] != "4095" {
		t.Errorf("%d documents, %v", len(docs), err)
	}
}

// A piece of a haystack begins with a sentence, any that leaves room for it, and ends with one.
func TestSentencesOf(t *testing.T) {
	for _, text := range []string{"One is. Two é are. 3.5 is no end. Four. ", "No sentence at all",
		"One. Without an end", "A.", ""} {
		begins := map[int]bool{0: true}
		for i := range text {
			if strings.HasSuffix(text[:i], ". ") {
				begins[i] = true
			}
		}
		for n := range len(text) + 3 {
			seen := map[int]bool{}
			for i := range 200 {
				got := sentencesOf(text)(rand.New(rand.NewPCG(5, uint64(i))), n)
				if got == "" {
					continue
				}
				from := strings.Index(text, got)
				for from >= 0 && !begins[from] { // a piece may be found inside a word too
					next := strings.Index(text[from+1:], got)
					if from += 1 + next; next < 0 {
						from = -1
					}
				}
				if len(got) > n || !strings.HasSuffix(got, ".") || from < 0 {
					t.Fatalf("%d bytes of %q: %q", n, text, got)
				}
				seen[from] = true
			}
			for at := range begins { // of those that hold a full stop
				if at <= len(text)-n && strings.Contains(text[at:at+n], ".") && !seen[at] && n < len(text) {
					t.Errorf("%d bytes of %q never begin at %d", n, text, at)
				}
			}
		}
	}
}

// Of a haystack four million bytes are read, or what the longest prompt needs.
func TestHaystackText(t *testing.T) {
	// 700,000 bytes on one line.
	row := `{"text": "` + strings.Repeat(strings.Repeat("a", 48)+"\\n "+strings.Repeat("b", 50)+" ", 7000) + `"}`
	dir := setFiles(t, map[string]string{"hay.jsonl": strings.Repeat(row+"\n", 8)})
	j := prepared(t, lookup(t, "needle"), eval.Options{Limit: 1}, 512)
	j.Plan.Values["haystack"] = filepath.Join(dir, "hay.jsonl")
	for least, want := range map[int]int{100: 6, 4_500_000: 7, 1 << 30: 8} {
		text, err := haystackText(t.Context(), j.Plan, least)
		if err != nil || len(text) != want*700_000 || strings.Contains(text, "\n") || strings.Contains(text, "  ") {
			t.Errorf("%d bytes for %d, want %d texts: %v", len(text), least, want, err)
		}
	}
	if len(j.Data()) != 1 {
		t.Errorf("the file is no part of the question: %v", j.Data())
	}
	own := setFiles(t, map[string]string{"lm/valid.jsonl": `{"text": "` + strings.Repeat("Held-out hay. ", 400) + `"}`})
	for dir, want := range map[string]string{own: "lm/valid", "": eval.StandIn} {
		j := prepared(t, lookup(t, "needle"), eval.Options{Limit: 1, Data: dir}, 512)
		if j.Config["source"] != want || strings.Contains(j.Gold[0].Context, "Held-out hay.") != (dir != "") {
			t.Errorf("hay of %v, want %s: %q", j.Config["source"], want, j.Gold[0].Context)
		}
	}
}

// A map's rows are words where there are too many tokens: a word begins with its spaces, however many, and a line break
// counts as one; the first token and the first word stand alone.
func TestUnits(t *testing.T) {
	s := subject(t, ref.New(), "diff", 200)
	text := strings.Repeat("ab  cd\n ef g", 8)
	ids := s.Encode(text)
	parts, words := units(s, ids)
	var got []string
	for _, u := range parts[1:] {
		got = append(got, unitTextOf(s, ids, u))
	}
	want := strings.Repeat("ab|  cd|\n ef| g", 8) // each copy's first word continues the last one's
	if !words || strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", strings.Join(got, "|"), want)
	}
	if short, words := units(s, ids[:64]); words || len(short) != 64 {
		t.Errorf("%d units of 64 tokens", len(short))
	}
}

// By hand: of two prompts with 1 of 4 and 2 of 3 right, among 90 values.
func TestHiddenFloors(t *testing.T) {
	h := &hidden{values: func(*eval.Plan) float64 { return 90 }}
	f := h.floors(nil, []hiddenCase{{right: []string{"a"}, others: []string{"b", "c", "d"}},
		{right: []string{"a", "b"}, others: []string{"c"}}})
	copied, guessed := (1./4+2./3)/2, (1./90+2./90)/2
	picked := (1./4 + (2./3+1./2)/2) / 2 // the second pick has one right of two left
	for metric, want := range map[string][2]float64{"bound": {guessed, copied}, "free": {guessed, copied},
		"constrained": {picked, picked}} {
		if got := f[metric]; !near(got["chance"], want[0], 1e-12) || !near(got["copy"], want[1], 1e-12) {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
}

// Examples are as many as asked for, of a pool with more, each once.
func TestShotsAreCounted(t *testing.T) {
	var pool []mcItem
	for i := range 9 {
		pool = append(pool, mcItem{contexts: []string{fmt.Sprint("q", i)}, endings: []string{"a"}})
	}
	for n := range 6 {
		text := shotsText(rand.New(rand.NewPCG(1, uint64(n))).Perm(len(pool)), pool, &pool[0], n)
		seen := map[string]bool{}
		for _, s := range strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			seen[s] = true
		}
		if strings.Count(text, "\n\n") != n || n > 0 && len(seen) != n || strings.Contains(text, "q0 ") {
			t.Errorf("%d examples: %q", n, text)
		}
	}
}

// What workers have seen is put together without keeping more than the hundred largest.
func TestExtremesAbsorb(t *testing.T) {
	var all, whole extremes
	for part := range 5 {
		var e extremes
		for i := range 70 {
			x := float64(part + 5*i)
			e.add(x)
			whole.add(x)
		}
		all.absorb(&e)
		if len(all.top) > keepTop || e.n != 0 || len(e.top) != 0 {
			t.Errorf("%d of the largest kept, %d left in the part", len(all.top), e.n)
		}
	}
	if all.result() != whole.result() || all.n != 350 {
		t.Errorf("%+v, in one go %+v", all.result(), whole.result())
	}
}
