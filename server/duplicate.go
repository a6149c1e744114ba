package server

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// duplicateKey finds a repeated name in an object of valid JSON, at any depth. encoding/json would silently keep the
// last. Numbers and other values are skipped byte by byte: a list of a million ids costs no more than reading it.
func duplicateKey(b []byte) (name string, found bool) {
	type frame struct {
		keys   map[string]bool // of an object so far; nil until the first
		object bool
		key    bool // a string here is a name
	}
	stack := []frame{{}}
	for i := 0; i < len(b); i++ {
		top := &stack[len(stack)-1]
		switch b[i] {
		case '{', '[':
			stack = append(stack, frame{object: b[i] == '{', key: b[i] == '{'})
		case '}', ']':
			stack = stack[:len(stack)-1]
		case ',':
			top.key = top.object
		case '"':
			text := quotedText(b[i:])
			i += len(text) - 1
			if !top.key {
				continue
			}
			top.key = false
			if name := unquoted(text); top.keys[name] {
				return name, true
			} else if top.keys == nil {
				top.keys = map[string]bool{name: true}
			} else {
				top.keys[name] = true
			}
		}
	}
	return "", false
}

// nullInList reports whether a list in valid JSON, at any depth, has an entry that is null. Where entries are numbers
// or objects encoding/json would read it as their zero value.
func nullInList(b []byte) bool {
	lists := []bool{false} // whether each open value is a list, the innermost last
	entry := false         // an entry of a list begins here
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			entry = b[i] == '['
			lists = append(lists, entry)
			continue
		case '}', ']':
			lists = lists[:len(lists)-1]
		case ',':
			entry = lists[len(lists)-1]
			continue
		case '"':
			i += len(quotedText(b[i:])) - 1
		case 'n':
			if entry {
				return true
			}
		case ' ', '\t', '\r', '\n':
			continue
		}
		entry = false
	}
	return false
}

// quotedText is the string at the beginning of b, with its quotes.
func quotedText(b []byte) []byte {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[:i+1]
		}
	}
	return b
}

// unquoted is the value of a string; two spellings of one name are the same name.
func unquoted(text []byte) string {
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text[1 : len(text)-1])
	}
	var s string
	if json.Unmarshal(text, &s) != nil { // impossible: the JSON is valid
		return string(text)
	}
	return s
}
