package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Spell formats a token like OpenAI: its text, or bytes:\xe2 if it is only part of a character.
func (t *Tokenizer) Spell(id int32) string {
	if t.Special(id) {
		return t.Token(id)
	}
	raw := t.TokenBytes(id)
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, x := range raw {
		fmt.Fprintf(&b, `\x%02x`, x)
	}
	return b.String()
}
