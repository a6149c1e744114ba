package main

import (
	"os"
	"strings"
	"testing"
)

// A value out of range is refused by the name of its flag; a text too small for the vocabulary is said.
func TestTokenizerTrainSays(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("t.txt", []byte("hello there hello there"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{"--vocab", "99999999999"}, {"--vocab", "4194305"}, {"--vocab", "256"},
		{"--vocab", "-1"}, {"--docs", "-1"}, {"--pattern", "nosuch"}} {
		code, _, errs := ran(t, "tokenizer", "train", "t.txt", "-o", "x.json", x[0], x[1])
		if code != exitUsage || !strings.HasPrefix(errs, "error: "+x[0]+": is ") {
			t.Errorf("%q: exit %d, %s", x, code, errs)
		}
	}
	const few = "note: the text gave 265 tokens of the 266 wanted: no other pair occurs 2 times\n"
	for vocab, noted := range map[string]bool{"265": false, "266": true} {
		code, _, errs := ran(t, "tokenizer", "train", "t.txt", "-o", "x.json", "--vocab", vocab)
		if code != 0 || !strings.Contains(errs, "x.json: 265 ids\n") || strings.Contains(errs, few) != noted {
			t.Errorf("%s: exit %d, %s", vocab, code, errs)
		}
	}
}
