package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type goldenCase struct {
	Text        string  `json:"text"`
	IDs         []int32 `json:"ids"`
	NoSpecial   []int32 `json:"ids_nospecial"`
	Decoded     string  `json:"decoded"`
	DecodedKeep string  `json:"decoded_keep"`
}

// goldenFolders lists the folders with a tokenizer.json and a golden.json: those of testdata and those found in the
// directories named by ANTIPHASE_GOLDEN and in their children.
func goldenFolders(t *testing.T) []string {
	t.Helper()
	var out []string
	roots := append([]string{"testdata"}, filepath.SplitList(os.Getenv("ANTIPHASE_GOLDEN"))...)
	for _, root := range roots {
		dirs := []string{root}
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatalf("golden directory: %v", err)
		}
		for _, e := range entries {
			dirs = append(dirs, filepath.Join(root, e.Name()))
		}
		for _, d := range dirs {
			_, err1 := os.Stat(filepath.Join(d, "tokenizer.json"))
			_, err2 := os.Stat(filepath.Join(d, "golden.json"))
			if err1 == nil && err2 == nil {
				out = append(out, d)
			}
		}
	}
	return out
}

func readGolden(t *testing.T, dir string) []goldenCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s: no cases", dir)
	}
	return cases
}

func loadDir(t testing.TB, dir string) *Tokenizer {
	t.Helper()
	tok, err := Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestGolden(t *testing.T) {
	folders := goldenFolders(t)
	if len(folders) < 2 {
		t.Fatalf("found %d golden folders; testdata alone has more", len(folders))
	}
	for _, dir := range folders {
		t.Run(dir, func(t *testing.T) {
			tok := loadDir(t, dir)
			cases := readGolden(t, dir)
			for _, c := range cases {
				checkGolden(t, tok, c)
			}
			b, err := tok.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(b)
			if err != nil {
				t.Fatalf("parse what MarshalJSON wrote: %v", err)
			}
			if again.Hash() != tok.Hash() {
				t.Error("the hash changes over a round trip")
			}
			for _, c := range cases {
				checkGolden(t, again, c)
			}
		})
	}
}

func checkGolden(t *testing.T, tok *Tokenizer, c goldenCase) {
	t.Helper()
	ids := func(what string, want, got []int32) {
		t.Helper()
		if !slices.Equal(want, got) {
			t.Errorf("%q: %s differ (-want +got):\n%s", c.Text, what, cmp.Diff(want, got))
		}
	}
	text := func(what, want, got string) {
		t.Helper()
		if want != got {
			t.Errorf("%q: %s differs:\nwant %+q\ngot  %+q", c.Text, what, want, got)
		}
	}
	ids("ids", c.IDs, tok.Encode(c.Text))
	ids("ids without template", c.NoSpecial, tok.Append(nil, c.Text))
	text("decoded", c.Decoded, tok.Decode(c.IDs, true))
	text("decoded with specials", c.DecodedKeep, tok.Decode(c.IDs, false))
	text("streamed", c.Decoded, streamed(tok, c.IDs, true))
	text("streamed with specials", c.DecodedKeep, streamed(tok, c.IDs, false))
}

func streamed(tok *Tokenizer, ids []int32, skip bool) string {
	var b strings.Builder
	s := tok.Stream(skip)
	for _, id := range ids {
		b.WriteString(s.Push(id))
	}
	b.WriteString(s.Flush())
	return b.String()
}
