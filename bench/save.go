package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Stamp is the origin of a row.
type Stamp struct {
	Commit  string    `json:"commit,omitempty"`
	Machine Machine   `json:"machine,omitzero"`
	Time    time.Time `json:"time,omitzero"`
	Command string    `json:"command,omitempty"`
}

// Machine is the machine a row was measured on.
type Machine struct {
	Device string `json:"device"`
	OS     string `json:"os"`
	Cores  int    `json:"cores"`
}

// Save appends rows to DIR/KIND.jsonl, one line each.
func Save(dir string, rows []Row) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("bench: save: %w", err)
	}
	for _, r := range rows {
		if err := appendRow(filepath.Join(dir, r.Kind+".jsonl"), r); err != nil {
			return fmt.Errorf("bench: save: %w", err)
		}
	}
	return nil
}

func appendRow(path string, r Row) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close() // the write's error is more informative
		return err
	}
	return f.Close()
}
