package chat

import (
	"strings"

	"github.com/nikolalohinski/gonja/v2/tokens"
)

// keepSpaces marks the tags before which white space stays. Under lstrip_blocks a statement or a comment removes the white
// space between it and the beginning of its line. gonja's lexer removes it after another tag on the same line as well; a
// plus sign in the tag stops it.
func keepSpaces(source string, list []*tokens.Token) string {
	var out strings.Builder
	copied := 0
	for i, t := range list {
		if t.Type != tokens.BlockBegin && t.Type != tokens.CommentBegin || len(t.Val) > 2 || ends(list[i+1:], "endraw") {
			continue
		}
		before := strings.TrimRight(source[:t.Pos], " \t\r\v\f")
		if len(before) == t.Pos || before == "" || strings.HasSuffix(before, "\n") {
			continue
		}
		out.WriteString(source[copied:t.Pos] + t.Val + "+")
		copied = t.Pos + len(t.Val)
	}
	return out.String() + source[copied:]
}

// ends reports whether a tag's first word is name.
func ends(tag []*tokens.Token, name string) bool {
	for _, t := range tag {
		if t.Type != tokens.Whitespace {
			return t.Type == tokens.Name && t.Val == name
		}
	}
	return false
}
