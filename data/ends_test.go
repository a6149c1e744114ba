package data

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// Whichever file operation of a build or of opening a set fails, the caller hears of it, unless the call can do
// without: it removes what is left of others, and of itself once the set is in its place.
func TestNoFaultOfABuildIsSwallowed(t *testing.T) {
	build := func(f vfs.FS) error {
		_, err := Build(t.Context(), "/d/set", []Source{randomTexts(30, 40, 1)}, narrow,
			BuildOptions{HeldOut: 0.2, ShardTokens: 300, Tokenizer: []byte("{}"), FS: f, Workers: 1})
		return err
	}
	tidies := func(op vfstest.Op) bool {
		return op.Kind == "remove" || op.Kind == "readdir" && filepath.Base(op.Path) == "d" || op.Kind == "stat" &&
			strings.Contains(op.Path, ".tmp-")
	}
	for name, c := range map[string]struct {
		before func(vfs.FS)
		act    func(vfs.FS) error
		least  int
		spare  func(op vfstest.Op) bool
	}{
		"a new set": {nil, build, 30, tidies},
		"opening": {func(f vfs.FS) { must(0, build(f)) }, func(f vfs.FS) error {
			s, err := OpenSetFS(f, "/d/set", true)
			if err != nil {
				return err
			}
			return s.Close()
		}, 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if n := vfstest.EachFault(t, c.before, c.act, c.spare); n < c.least {
				t.Errorf("%d operations, want at least %d", n, c.least)
			}
		})
	}
}

// A prefetcher ends where its loader does, says so as often as it is asked, and keeps its position.
func TestPrefetchEnds(t *testing.T) {
	s := mixedSet(t, []Share{{Weight: 1, Epochs: 1}, {Weight: 1, Epochs: 1}}, 100, 100)
	sp := must(split(t, s, Train).Mix(s.Manifest.Shares()))
	p := prefetch(t, NewLoader(sp, 3, 10, 1))
	rows := NewLoader(sp, 3, 10, 1).Left()
	n := 0
	ids := make([]int32, 30)
	var err error
	for ; err == nil && n < 100; n++ {
		err = p.Next(ids, make([]int32, 30), make([]int32, 30))
	}
	if n-1 != int(rows/3) || err == nil || err.Error() != "data: the sources' epochs allow no further batch of 3 rows" {
		t.Errorf("%d batches of %d rows, then %v", n-1, rows, err)
	}
	at := p.Position()
	if again := p.Next(ids, make([]int32, 30), make([]int32, 30)); again == nil || again.Error() != err.Error() ||
		fmt.Sprint(p.Position()) != fmt.Sprint(at) {
		t.Errorf("asked again: %v at %v, was at %v", again, p.Position(), at)
	}
}

// What is wrong with a value is said in JSON's words, for every kind of field.
func TestJSONErrorsOfEveryKind(t *testing.T) {
	type all struct {
		S   string
		B   bool
		I   int
		I32 int32
		I64 int64
		F   float64
		L   []string
		A   [2]int
		M   map[string]int
		O   struct{ X string }
		P   *string
	}
	for line, want := range map[string]string{
		`{"s":1}`:            `field "s": want a string, found a number`,
		`{"b":"x"}`:          `field "b": want true or false, found a string`,
		`{"i":"x"}`:          `field "i": want a whole number, found a string`,
		`{"i32":true}`:       `field "i32": want a whole number, found true or false`,
		`{"i64":[]}`:         `field "i64": want a whole number, found an array`,
		`{"i64":1.5}`:        `field "i64": want a whole number, found the number 1.5`,
		`{"i32":3000000000}`: `field "i32": want a whole number, found the number 3000000000`,
		`{"f":{}}`:           `field "f": want a number, found an object`,
		`{"l":{}}`:           `field "l": want an array, found an object`,
		`{"a":"x"}`:          `field "a": want an array, found a string`,
		`{"m":[]}`:           `field "m": want an object, found an array`,
		`{"o":1}`:            `field "o": want an object, found a number`,
		`{"p":[]}`:           `field "p": want a string, found an array`,
		`{"o":{"x":1}}`:      `field "o.x": want a string, found a number`, `[]`: `want an object, found an array`,
		`"x"`: `want an object, found a string`,
	} {
		var v all
		if err := ReadJSON([]byte(line), &v); err == nil || !strings.EqualFold(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	if err := JSONError(json.Unmarshal([]byte("{"), &all{})); err == nil ||
		err.Error() != "unexpected end of JSON input" {
		t.Error(err)
	}
}

// Lists in messages are whole: the kinds of files, the columns of a table.
func TestListsInMessages(t *testing.T) {
	dir := t.TempDir()
	const kinds = ".txt, .txt.gz, .txt.zst, .md, .md.gz, .md.zst, .jsonl, .jsonl.gz, .jsonl.zst or .parquet"
	csv := filepath.Join(dir, "x.csv")
	write(t, csv, []byte("a"))
	type nested struct {
		ID   int64 `parquet:"id"`
		Body struct {
			Words string `parquet:"words"`
			Count int32  `parquet:"count"`
		} `parquet:"body"`
	}
	table := filepath.Join(dir, "t.parquet")
	write(t, table, parquetOf(t, []nested{{ID: 1}}))
	for spec, want := range map[string]string{
		csv: fmt.Sprintf("data: source %q: unknown kind of file; want one that ends with %s",
			csv, kinds),
		filepath.Join(dir, "*.c*"): fmt.Sprintf(
			"data: source %q: glob %s matches no file that ends with %s (it matches 1 other names)",
			filepath.Join(dir, "*.c*"), filepath.Join(dir, "*.c*"), kinds),
		table: fmt.Sprintf(`data: %s: no string column "text"; its columns are id (INT(64,true)), `+
			`body.words (STRING), body.count (INT(32,true))`, table),
	} {
		if _, err := Open(spec); err == nil || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if _, err := OpenSet(dir, true); err == nil ||
		!strings.HasPrefix(err.Error(), "data: "+dir+" is not a token set: ") {
		t.Error(err)
	}
}
