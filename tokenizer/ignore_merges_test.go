package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// With ignore_merges a word that is a token is that token, whatever is inside it: also a space, at which other words
// may be cut before they are merged. Without it only merges make it.
func TestIgnoreMergesAcrossSpaces(t *testing.T) {
	for _, space := range []string{" ", "▁"} {
		for _, c := range []struct {
			parts, text string
			want        []int32
		}{
			{`"ignore_merges":true,`, "a_b", []int32{3}}, {`"ignore_merges":false,`, "a_b", []int32{0, 2, 1}},
			{``, "a_b", []int32{0, 2, 1}},
			{`"ignore_merges":true,`, "a_a", []int32{0, 2, 0}}, {`"ignore_merges":true,`, "a_b_", []int32{0, 2, 1, 2}},
		} {
			raw := fmt.Sprintf(`{"version":"1.0","model":{"type":"BPE",%s"vocab":{"a":0,"b":1,%q:2,%q:3},"merges":[]}}`,
				c.parts, space, "a"+space+"b")
			tok, err := Parse([]byte(raw))
			if err != nil {
				t.Fatal(err, raw)
			}
			text := strings.ReplaceAll(c.text, "_", space)
			if got := tok.Encode(text); !slices.Equal(got, c.want) {
				t.Errorf("%s %q: %v, want %v", c.parts, text, got, c.want)
			}
		}
	}
}

// A decoder is taken with its own fields, of their kinds, and no others.
func TestDecoderFields(t *testing.T) {
	for _, good := range []string{
		`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}`, `{"type":"ByteFallback"}`,
		`{"type":"Fuse"}`, `{"type":"Strip","content":" ","start":1,"stop":0}`,
		`{"type":"Replace","pattern":{"String":"a"},"content":"b"}`,
		`{"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}`,
	} {
		if _, err := parseDecoder(json.RawMessage(good), &budget{}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
		bad := strings.Replace(good, `"type"`, `"nothing":1,"type"`, 1)
		if _, err := parseDecoder(json.RawMessage(bad), &budget{}); err == nil ||
			!strings.Contains(err.Error(), "nothing") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{
		`{"type":"Strip","content":" ","start":"1","stop":0}`, `{"type":"Strip","content":" ","start":-1,"stop":0}`,
		`{"type":"Strip","content":" ","start":0,"stop":-1}`, `{"type":"Strip","content":"ab","start":0,"stop":0}`,
		`{"type":"Replace","content":"b"}`, `{"type":"Replace","pattern":{"Other":"a"},"content":"b"}`,
		`{"type":"Metaspace","replacement":"xy"}`, `{"type":"Nothing"}`, `{}`, `7`,
	} {
		if _, err := parseDecoder(json.RawMessage(bad), &budget{}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
