package tokenizer

import (
	"slices"
	"testing"
)

// TestBeginning puts one token before every text, whatever the file's own post-processor does.
func TestBeginning(t *testing.T) {
	for _, dir := range []string{"gpt2-style", "llama2-style"} {
		old := loadDir(t, "testdata/"+dir)
		id, ok := old.EOS()
		if !ok {
			t.Fatalf("%s has no end-of-text token", dir)
		}
		tok, err := old.Beginning(id)
		if err != nil {
			t.Fatal(err)
		}
		const text = "Hello world"
		if got, want := tok.Encode(text), append([]int32{id}, old.Encode(text, NoTemplate)...); !slices.Equal(got, want) {
			t.Errorf("%s: ids %v, want %v", dir, got, want)
		}
		if got, want := tok.Encode(text, NoTemplate), old.Encode(text, NoTemplate); !slices.Equal(got, want) {
			t.Errorf("%s without template: ids %v, want %v", dir, got, want)
		}
		if again, err := tok.Beginning(id); err != nil || again != tok {
			t.Errorf("%s: a second time: %v, %v", dir, again, err)
		}
	}
	if _, err := Bytes().Beginning(9999); err == nil {
		t.Error("a token that is not there was put before texts")
	}
}
