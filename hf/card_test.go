package hf

import (
	"fmt"
	"strings"
	"testing"
)

// The card of each class: its front matter, table, and code as a person would run it.
func TestCardByClass(t *testing.T) {
	for class, want := range map[Class][2]bool{Llama: {false, false}, DiffLlama: {true, false},
		Antiphase: {true, true}} { // differential, own code
		c := &Card{Name: "name", Class: class, About: "About it.", Facts: [][2]string{{"a|b", "c"}, {"d", "e\nf"}}}
		text := string(c.Markdown())
		if !strings.HasPrefix(text,
			"---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- antiphase\n") ||
			!strings.Contains(text, "\n# name\n\nAbout it.\n\n| | |\n|---|---|\n| a\\|b | c |\n| d | e f |\n") {
			t.Errorf("%s:\n%s", class, text)
		}
		if got := [2]bool{strings.Contains(text, "- differential-transformer\n"),
			strings.Contains(text, "from_pretrained(folder, trust_remote_code=True)")}; got != want {
			t.Errorf("%s: %v, want %v", class, got, want)
		}
		if strings.Contains(text, "```json") || strings.Count(text, "```python") != 1 ||
			strings.Count(text, "```")%2 != 0 {
			t.Errorf("%s:\n%s", class, text)
		}
		if strings.Contains(text,
			"the folder brings its own, `modeling_antiphase.py`, to be read before it is trusted.\n") != want[1] {
			t.Errorf("%s: what to read before:\n%s", class, text)
		}
		if !strings.HasSuffix(text,
			"\n`antiphase generate --model path/to/this/folder Once` runs it without Python.\n") {
			t.Errorf("%s: the end is\n%s", class, text)
		}
		c.Recipe = []byte("{\"x\": 1}\n")
		if text := string(c.Markdown()); !strings.Contains(text, "```json\n{\"x\": 1}\n```") {
			t.Errorf("%s:\n%s", class, text)
		}
	}
	if got := fmt.Sprint(Classes(), DTypes()); got != "[auto llama diffllama antiphase] [bfloat16 float16 float32]" {
		t.Error(got)
	}
}
