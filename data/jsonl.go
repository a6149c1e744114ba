package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of JSON, so that a small compressed file cannot ask for all memory.
const maxLine = 1 << 28

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
			var row struct {
				Text *string `json:"text"`
			}
			if err := json.Unmarshal(b, &row); err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			if row.Text == nil {
				return fmt.Errorf(`line %d: no field "text"; want {"text": "..."} on every line`, line)
			}
			if !yield(*row.Text) {
				return nil
			}
		}
		if eof {
			return nil
		}
	}
}

// readLine appends the next line to buf.
func readLine(r *bufio.Reader, buf []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if len(buf) > maxLine {
			return buf, fmt.Errorf("longer than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, err
		}
	}
}
