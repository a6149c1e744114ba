package tokenizer

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFallbackMarksEveryByte: a run of byte tokens is its text if that is UTF-8, otherwise one U+FFFD per byte, as
// Hugging Face's decoder has it; streamed or not, wherever the run becomes invalid.
func TestFallbackMarksEveryByte(t *testing.T) {
	alphabet := []byte{'A', 0xc3, 0xa9, 0xe4, 0xff}
	var check func(run []byte)
	check = func(run []byte) {
		if len(run) > 0 {
			want := string(run)
			if !utf8.Valid(run) {
				want = strings.Repeat("\uFFFD", len(run))
			}
			var got strings.Builder
			f := byteFallbackDecoder{}.open(func(s string) { got.WriteString(s) }, false)
			for _, b := range run {
				f.push(fmt.Sprintf("<0x%02X>", b))
			}
			f.push("word")
			f.push("<0x42>")
			f.flush()
			if got.String() != want+"wordB" {
				t.Errorf("bytes % x: %q, want %q", run, got.String(), want+"wordB")
			}
		}
		if len(run) == 4 {
			return
		}
		for _, b := range alphabet {
			check(append(run[:len(run):len(run)], b))
		}
	}
	check(nil)
}
