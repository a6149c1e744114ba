package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Lines yields the non-blank lines of a text file, counted from 1, until yield returns an error. The file may be
// compressed (.gz, .zst).
func Lines(path string, yield func(n int, line []byte) error) error {
	var own error // the caller's error
	read := func(r *bufio.Reader, _ func(string) bool) error {
		var buf []byte
		for n := 1; ; n++ {
			b, err := readLine(r, buf[:0])
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("line %d: %w", n, err)
			}
			buf = b
			if n == 1 {
				b = bytes.TrimPrefix(b, []byte(bom))
			}
			if b = bytes.TrimSpace(b); len(b) > 0 {
				if own = yield(n, b); own != nil {
					return own
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
	switch err := file(f, nil); {
	case own != nil:
		return fmt.Errorf("%s: %w", path, own)
	case err != nil:
		return unreadable(path, err)
	}
	return nil
}
