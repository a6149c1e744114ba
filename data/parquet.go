package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// readParquet yields the values of column "text" and skips nulls. Only that column is read.
func readParquet(f *os.File, yield func(string) bool) (err error) {
	// The library panics on some malformed files; a bad input file must be an error.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed parquet: %v", p)
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return err
	}
	leaf, ok := file.Schema().Lookup("text")
	if !ok || leaf.MaxRepetitionLevel > 0 || leaf.Node.Type().Kind() != parquet.ByteArray {
		return fmt.Errorf(`no string column "text"; its columns are %s`, columns(file.Schema()))
	}
	for _, g := range file.RowGroups() {
		more, err := readPages(g.ColumnChunks()[leaf.ColumnIndex], yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func columns(s *parquet.Schema) string {
	var names []string
	for _, path := range s.Columns() {
		names = append(names, strings.Join(path, "."))
	}
	return strings.Join(names, ", ")
}

func readPages(chunk parquet.ColumnChunk, yield func(string) bool) (more bool, err error) {
	pages := chunk.Pages()
	defer pages.Close()
	values := make([]parquet.Value, 64)
	for left := chunk.NumValues(); ; {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) && left > 0 {
			return false, fmt.Errorf("%d values of column \"text\" are missing: %w", left, io.ErrUnexpectedEOF)
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		left -= page.NumValues()
		more, err := readValues(page.Values(), values, yield)
		parquet.Release(page)
		if err != nil || !more {
			return false, err
		}
	}
}

func readValues(r parquet.ValueReader, values []parquet.Value, yield func(string) bool) (more bool, err error) {
	for {
		n, err := r.ReadValues(values)
		for _, v := range values[:n] {
			if v.IsNull() {
				continue
			}
			if n := len(v.ByteArray()); n > maxLine {
				return false, fmt.Errorf("a text of %d bytes is longer than %d MiB, which is the most that one document may have", n, maxLine>>20)
			}
			// The bytes belong to the page, which is reused, so copy them.
			if !yield(string(v.ByteArray())) {
				return false, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
