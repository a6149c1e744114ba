package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// columns is the width of a listing for w: the terminal's, that of COLUMNS, or 100.
func columns(w io.Writer) int {
	if f, ok := file(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 100
}

// writeListing writes rows of cells in columns that are two spaces apart. The last wrapped columns share what the
// others leave of width: their words continue on further lines, and words are not broken.
func writeListing(w io.Writer, width, wrapped int, rows [][]string) error {
	widths := columnWidths(width, wrapped, rows)
	for _, row := range rows {
		cells := make([][]string, len(row))
		lines := 1
		for i, cell := range row {
			cells[i] = []string{cell}
			if i >= len(row)-wrapped {
				cells[i] = wrapWords(cell, widths[i])
			}
			lines = max(lines, len(cells[i]))
		}
		for k := range lines {
			var b strings.Builder
			for i, c := range cells {
				text := ""
				if k < len(c) {
					text = c[k]
				}
				b.WriteString(text + strings.Repeat(" ", 2+max(0, widths[i]-utf8.RuneCountInString(text))))
			}
			if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// columnWidths are those of the longest cells; the last wrapped columns get equal shares of the rest of width, and what
// one does not need goes to those after it. A column is never narrower than its longest word.
func columnWidths(width, wrapped int, rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	words := slices.Clone(widths)
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			for _, word := range strings.Fields(cell) {
				words[i] = max(words[i], utf8.RuneCountInString(word))
			}
		}
	}
	for i := range widths {
		if left := len(widths) - i; left <= wrapped {
			widths[i] = min(widths[i], max(words[i], (width-2*(left-1))/left))
		}
		width -= widths[i] + 2
	}
	return widths
}

// wrapWords breaks a text between words into lines of at most width characters where words allow it.
func wrapWords(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
