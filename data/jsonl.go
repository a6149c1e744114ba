package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"antiphase/internal/surrogate"
)

// maxLine bounds one line of JSON and one cell of Parquet, so that a small compressed file cannot use all memory:
// encoding takes about 25 times a document's size. The longest books are a third of it.
const maxLine = 16 << 20

// readJSONL yields field "text" of one JSON object per line; blank lines are allowed.
func readJSONL(r *bufio.Reader, yield func(string) bool) error {
	var buf []byte
	for line := 1; ; line++ {
		b, err := readLine(r, buf[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", line, err)
		}
		eof := err != nil
		buf = b
		if line == 1 {
			b = bytes.TrimPrefix(b, []byte(bom))
		}
		if b = bytes.TrimSpace(b); len(b) > 0 {
			text, err := textField(b)
			if err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			if !yield(text) {
				return nil
			}
		}
		if eof {
			return nil
		}
	}
}

// textField returns field "text" of a line. If the line is not UTF-8, or its text has half of a surrogate pair, which
// the decoder would hide, it returns something that is not UTF-8, so that the document is left out and counted.
func textField(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return string(b), nil
	}
	if _, half := surrogate.Lone(b); half && halfText(b) {
		return "\xff", nil
	}
	var row struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(exact(b), &row); err != nil {
		return "", JSONError(err)
	}
	if row.Text == nil {
		return "", errors.New(`no field "text"; want {"text": "..."} on every line`)
	}
	return *row.Text, nil
}

// exact is the field "text" of a line that has others like "Text" as well: the decoder would take the last of them, in
// whatever case. Any other line is returned as it is.
func exact(b []byte) []byte {
	const key = `"text"`
	alike := false
	for rest := b; !alike; rest = rest[1:] {
		i := bytes.IndexByte(rest, '"')
		if i < 0 || len(rest)-i < len(key) {
			return b
		}
		rest = rest[i:]
		word := string(rest[:len(key)])
		alike = word != key && strings.EqualFold(word, key)
	}
	var row map[string]json.RawMessage
	if json.Unmarshal(b, &row) != nil || row["text"] == nil {
		return b
	}
	return slices.Concat([]byte(`{"text":`), row["text"], []byte("}"))
}

// halfText reports whether field "text" of a line has half of a surrogate pair.
func halfText(b []byte) bool {
	var row struct {
		Text json.RawMessage `json:"text"`
	}
	if json.Unmarshal(exact(b), &row) != nil {
		return false // the caller says what is wrong
	}
	_, half := surrogate.Lone(row.Text)
	return half
}

// readLine appends the next line to buf.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if len(buf) > maxLine {
			return buf, fmt.Errorf("longer than %d MiB, which is the most that one document may have", maxLine>>20)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, err
		}
	}
}
