package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// logHead is the first line of a sample log: what its samples answer. A log of anything else is begun anew.
type logHead struct {
	Task    string `json:"task"`
	Key     string `json:"key"`
	Samples int    `json:"samples"`
}

// logRow is one line behind it.
type logRow struct {
	Answer
	Seconds float64 `json:"seconds,omitempty"` // that the chunk of this sample took, on its last one
}

// sampleLog is the file in which a task's samples are kept as they come, so that a call that was stopped goes on where it was.
type sampleLog struct {
	file *os.File // nil without an output folder
	docs bool
}

// openLog opens the log at path and returns what it holds under the same head. An incomplete last line, of a call that was
// killed, is dropped.
func openLog(path string, head logHead, docs bool) (*sampleLog, map[string]Answer, float64, error) {
	if path == "" {
		return &sampleLog{docs: docs}, nil, 0, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, 0, err
	}
	done, seconds, err := readLog(path, head, docs)
	if err != nil {
		return nil, nil, 0, err
	}
	f, err := beginLog(path, head, done)
	if err != nil {
		return nil, nil, 0, err
	}
	out := make(map[string]Answer, len(done))
	for _, r := range done {
		out[r.ID] = r.Answer
	}
	return &sampleLog{file: f, docs: docs}, out, seconds, nil
}

// beginLog writes head and rows beside the log, puts them in its place and opens it to go on.
func beginLog(path string, head logHead, rows []logRow) (*os.File, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	err := e.Encode(head)
	for i := 0; i < len(rows) && err == nil; i++ {
		err = e.Encode(rows[i])
	}
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path+".new", b.Bytes(), 0o644); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// readLog gives the rows of a log that was written under the same head; none of another, or where docs are wanted that it lacks.
func readLog(path string, head logHead, docs bool) (rows []logRow, seconds float64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for first := true; ; first = false {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what has no end of line was not written whole
			return rows, seconds, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		if first {
			var have logHead
			if json.Unmarshal(line, &have) != nil || have != head {
				return nil, 0, nil
			}
			continue
		}
		var r logRow
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, 0, fmt.Errorf("%s: line %d: %w; delete the file to begin anew", path, len(rows)+2, err)
		}
		if docs && r.Doc == nil {
			return nil, 0, nil
		}
		rows = append(rows, r)
		seconds += r.Seconds
	}
}

// write appends a chunk's samples.
func (l *sampleLog) write(samples []Answer, seconds float64) error {
	for i := range samples {
		if !l.docs {
			samples[i].Doc = nil
		}
	}
	if l.file == nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i, s := range samples {
		r := logRow{Answer: s}
		if i == len(samples)-1 {
			r.Seconds = seconds
		}
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("sample %s: %w", s.ID, err)
		}
	}
	_, err := l.file.Write(b.Bytes())
	return err
}

func (l *sampleLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// fileName makes a name of a model or task fit for a file.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) {
			return '_'
		}
		return r
	}, s)
}
