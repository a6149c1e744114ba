package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Lines yields the lines of a text file that are not blank, counted from 1, until yield returns an error. The file may be compressed
// (.gz, .zst). It serves rows of JSON whose fields are the caller's business.
func Lines(path string, yield func(n int, line []byte) error) error {
	read := func(r *bufio.Reader, _ func(string) bool) error {
		var buf []byte
		for n := 1; ; n++ {
			b, err := readLine(r, buf[:0])
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("line %d: %w", n, err)
			}
			buf = b
			if n == 1 {
				b = bytes.TrimPrefix(b, []byte("\ufeff"))
			}
			if b = bytes.TrimSpace(b); len(b) > 0 {
				if err := yield(n, b); err != nil {
					return err
				}
			}
			if err != nil {
				return nil
			}
		}
	}
	file := plain(read)
	switch r := readerOf(path, []reader{{ending: ".gz"}, {ending: ".zst"}}); {
	case r == nil:
	case r.ending == ".gz":
		file = gunzip(read)
	default:
		file = unzstd(read)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := file(f, nil); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
