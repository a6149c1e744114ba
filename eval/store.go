package eval

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"antiphase/internal/vfs"
)

// Store is an append-only folder of results: rows of JSON, each with a checksum, in one file per writing process, so
// that any number of processes may add to it at once. A cell (one model, one question) is identified by everything that
// can change its number; its rows are a head, an answer per sample, and the result once all are there.
// docs/format/eval-store.md describes it.
type Store struct {
	dir      string // empty: in memory
	file     *os.File
	cells    map[string]*Cell
	order    []string
	Warnings []string // damaged rows, which were skipped
}

// Cell is one model's answers to one question.
type Cell struct {
	Head    Head
	Answers map[string]Answer
	Seconds float64
	Result  *Result // nil while answers are missing
	logged  map[string]bool
}

// Head describes a cell.
type Head struct {
	Model     Model          `json:"model"`
	Question  string         `json:"question"`
	Task      string         `json:"task"`
	Version   int            `json:"version"`
	Shots     int            `json:"shots"`
	Config    map[string]any `json:"config,omitempty"`
	Data      string         `json:"data,omitempty"` // folder of data sets; empty: generated
	Seed      uint64         `json:"seed"`
	Limit     int            `json:"limit,omitempty"`
	Samples   int            `json:"samples"`
	Replicate string         `json:"replicate,omitempty"`
	Machine   string         `json:"machine,omitempty"`
	Commit    string         `json:"commit,omitempty"`
	Time      time.Time      `json:"time"`
}

// Model identifies an evaluated model: Name, Group, Run and Tokens are labels, the rest can change its numbers.
type Model struct {
	Name       string `json:"name"`
	Group      string `json:"group,omitempty"` // models that differ in their training seed
	Hash       string `json:"hash,omitempty"`  // of weights, configuration and tokenizer
	Arch       string `json:"arch,omitempty"`
	Parameters int    `json:"parameters,omitempty"`
	Context    int    `json:"context"`
	Precision  string `json:"precision,omitempty"`
	Device     string `json:"device,omitempty"`  // cpu, cuda or endpoint
	Threads    int    `json:"threads,omitempty"` // of tasks that measure speed
	Run        string `json:"run,omitempty"`     // the run it is a checkpoint of
	Tokens     int64  `json:"tokens,omitempty"`  // number of training tokens, if known
}

// row is a line of a store. Exactly one of the last three fields is set.
type row struct {
	Cell    string  `json:"cell"`
	Head    *Head   `json:"head,omitempty"`
	Answer  *Answer `json:"answer,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // of the chunk that ends with this answer
	Logged  bool    `json:"logged,omitempty"`  // the answer includes its Doc, if it has one
	Result  *Result `json:"result,omitempty"`
}

// OpenStore reads the store in dir, which is made if it does not exist.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir, cells: map[string]*Cell{}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return s, s.read(dir)
}

// ReadStores reads several stores as one.
func ReadStores(dirs ...string) (*Store, error) {
	s := &Store{cells: map[string]*Cell{}}
	for _, dir := range dirs {
		if err := s.read(dir); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// storePattern names the files of a store.
const storePattern = "rows-*.jsonl"

// IsStore reports whether a folder holds rows.
func IsStore(dir string) bool {
	names, _ := vfs.Glob(vfs.OS{}, dir, storePattern) // none of a folder that cannot be read
	return len(names) > 0
}

func (s *Store) read(dir string) error {
	names, err := vfs.Glob(vfs.OS{}, dir, storePattern)
	if err != nil {
		return err
	}
	slices.Sort(names) // they begin with their time
	for _, name := range names {
		if err := s.readFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (s *Store) readFile(name string) error {
	st, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !st.Mode().IsRegular() {
		err = errNotPlain
	}
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end was being written when the process was killed
			return nil
		}
		if err != nil {
			return err
		}
		var r row
		if body, ok := checked(line); !ok {
			s.Warnings = append(s.Warnings,
				fmt.Sprintf("%s: line %d: the checksum does not match; the row is left out", name, n))
		} else if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		} else {
			s.take(&r)
		}
	}
}

// take adds a row to its cell. Of two answers to a question the first counts, and may get its Doc from the second.
// Labels of a model may change; the last ones count.
func (s *Store) take(r *row) {
	c := s.cells[r.Cell]
	if c == nil {
		c = &Cell{Answers: map[string]Answer{}, logged: map[string]bool{}}
		s.cells[r.Cell] = c
		s.order = append(s.order, r.Cell)
	}
	switch {
	case r.Head != nil:
		c.Head = *r.Head
	case r.Answer != nil:
		a, again := c.Answers[r.Answer.ID]
		if !again {
			a = *r.Answer
			c.Seconds += r.Seconds
		}
		if r.Logged {
			a.Doc, c.logged[a.ID] = r.Answer.Doc, true
		}
		c.Answers[a.ID] = a
	case r.Result != nil:
		c.Result = r.Result
	}
}

// Cells are the finished cells in the order in which they were begun, with their answers.
func (s *Store) Cells() []*Cell {
	var out []*Cell
	for _, key := range s.order {
		if c := s.cells[key]; c.Result != nil && c.Head.Task != "" {
			c.fill()
			out = append(out, c)
		}
	}
	return out
}

// Unfinished is the number of cells without a result.
func (s *Store) Unfinished() int { return len(s.order) - len(s.Cells()) }

// fill adds the answers to the result, in a fixed order.
func (c *Cell) fill() {
	if len(c.Result.Answers) > 0 {
		return
	}
	ids := make([]string, 0, len(c.Answers))
	for id := range c.Answers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c.Result.Answers = append(c.Result.Answers, c.Answers[id])
	}
}

// write appends rows to the file and to the cells.
func (s *Store) write(rows ...row) error {
	var b bytes.Buffer
	for i := range rows {
		line, err := marshal(&rows[i])
		if err != nil {
			return err
		}
		b.Write(sealed(line))
	}
	if s.dir != "" {
		if err := s.open(); err != nil {
			return err
		}
		if _, err := s.file.Write(b.Bytes()); err != nil {
			return err
		}
	}
	for i := range rows {
		s.take(&rows[i])
	}
	return nil
}

// open begins this process's file.
func (s *Store) open() error {
	if s.file != nil {
		return nil
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	name := fmt.Sprintf("rows-%s-%d-%s.jsonl", time.Now().UTC().Format("20060102T150405.000000000"), os.Getpid(),
		hex.EncodeToString(id[:]))
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	s.file = f
	return err
}

// Close syncs and closes this process's file.
func (s *Store) Close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return errors.Join(f.Sync(), f.Close())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const sealFormat = `,"crc":"%08x"}`

// sealed ends a JSON object with the checksum of the text before it.
func sealed(line []byte) []byte {
	body := line[:len(line)-1]
	return append(fmt.Appendf(bytes.Clone(body), sealFormat, crc32.Checksum(body, castagnoli)), '\n')
}

// checked removes the checksum and reports whether it matches.
func checked(line []byte) ([]byte, bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	at := len(line) - len(`,"crc":"00000000"}`)
	if at < 0 || !bytes.Equal(line[at:], fmt.Appendf(nil, sealFormat, crc32.Checksum(line[:at], castagnoli))) {
		return nil, false
	}
	return append(bytes.Clone(line[:at]), '}'), true
}
