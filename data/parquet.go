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
	if n := st.Size(); n < 12 { // two magic words and a length
		return fmt.Errorf("has %d bytes, too few for Parquet: %w", n, io.ErrUnexpectedEOF)
	}
	file, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return err
	}
	leaf, ok := file.Schema().Lookup("text")
	if !ok || leaf.MaxRepetitionLevel > 0 || leaf.Node.Type().Kind() != parquet.ByteArray {
		return fmt.Errorf(`no string column "text"; its columns are %s`, columns(file.Schema()))
	}
	c := textColumn{yield: yield}
	for _, g := range file.RowGroups() {
		more, err := c.read(g.ColumnChunks()[leaf.ColumnIndex])
		if err != nil {
			return err
		}
		// Pages are read anywhere in the file; its position says how much of it that was, as that of a stream does.
		if !more {
			_, err := f.Seek(int64(float64(st.Size())*float64(c.seen)/float64(file.NumRows())), io.SeekStart)
			return err
		}
	}
	_, err = f.Seek(0, io.SeekEnd)
	return err
}

// columns lists the columns with their types.
func columns(s *parquet.Schema) string {
	var list []string
	for _, path := range s.Columns() {
		kind := ""
		if leaf, ok := s.Lookup(path...); ok {
			kind = leaf.Node.Type().String()
			if leaf.MaxRepetitionLevel > 0 {
				kind = "list of " + kind
			}
		}
		list = append(list, fmt.Sprintf("%s (%s)", strings.Join(path, "."), kind))
	}
	return strings.Join(list, ", ")
}

// textColumn passes on the texts of a column.
type textColumn struct {
	yield func(string) bool
	seen  int64 // values so far, nulls included
}

// read reads a row group's part of the column.
func (c *textColumn) read(chunk parquet.ColumnChunk) (more bool, err error) {
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
		more, err := c.values(page.Values(), values)
		parquet.Release(page)
		if err != nil || !more {
			return false, err
		}
	}
}

func (c *textColumn) values(r parquet.ValueReader, values []parquet.Value) (more bool, err error) {
	for {
		n, err := r.ReadValues(values)
		for _, v := range values[:n] {
			if c.seen++; v.IsNull() {
				continue
			}
			if n := len(v.ByteArray()); n > maxLine {
				return false, fmt.Errorf(
					"a text of %d bytes is longer than %d MiB, which is the most that one document may have",
					n, maxLine>>20)
			}
			// The bytes belong to the page, which is reused, so copy them.
			if !c.yield(string(v.ByteArray())) {
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
