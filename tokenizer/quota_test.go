package tokenizer

import (
	"os"
	"strings"
	"testing"

	"antiphase/internal/quota"
)

// TestParseMemory: no tokenizer.json makes the parser, or the encoding of a short text, take much more than its own
// length.
func TestParseMemory(t *testing.T) {
	replace := `{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`
	files := map[string]string{
		"doubling":     strings.Replace(tinyJSON, `{"type":"NFC"}`, strings.Repeat(replace, 40)+`{"type":"NFC"}`, 1),
		"long content": strings.Replace(tinyJSON, `"content":"▁"`, `"content":"`+strings.Repeat("x", 1<<18)+`"`, 1),
		"brackets":     strings.Repeat("[", 1<<17),
		"high id":      `{"model":{"vocab":{"a":2147483647},"merges":[]}}`,
		"high added":   `{"added_tokens":[{"id":2147483647,"content":"<s>"}],"model":{"vocab":{"a":0},"merges":[]}}`,
		"sequences": strings.Replace(tinyJSON, `{"type":"NFC"}`,
			strings.Repeat(`{"type":"Sequence","normalizers":[`, 5000)+strings.Repeat("]}", 5000), 1),
	}
	for _, dir := range []string{"l3", "falcon"} {
		b, err := os.ReadFile("testdata/" + dir + "/tokenizer.json")
		if err != nil {
			t.Fatal(err)
		}
		files[dir] = string(b)
	}
	for name, text := range files {
		quota.Check(t, name, len(text), 100, func() {
			if tok, err := Parse([]byte(text)); err == nil {
				tok.Encode(strings.Repeat("a b ", 100))
			}
		})
	}
}
