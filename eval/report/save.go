package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"antiphase/eval"
)

// Row is one number of an evaluation with everything needed to reproduce it. Tables in documents are rendered from
// rows.
type Row struct {
	Task       string             `json:"task"`
	Version    int                `json:"version"`
	Shots      int                `json:"shots"`
	Metric     string             `json:"metric"`
	Value      float64            `json:"value"`
	StdErr     float64            `json:"stderr"`
	N          int                `json:"n"`
	Floors     map[string]float64 `json:"floors,omitempty"`
	Model      string             `json:"model"`
	Hash       string             `json:"hash,omitempty"`
	Arch       string             `json:"arch,omitempty"`
	Parameters int                `json:"parameters,omitempty"`
	Precision  string             `json:"precision,omitempty"`
	Device     string             `json:"device,omitempty"`
	Config     map[string]any     `json:"config,omitempty"`
	Data       string             `json:"data,omitempty"` // empty: generated
	Seed       uint64             `json:"seed"`
	Limit      int                `json:"limit,omitempty"`
	Commit     string             `json:"commit"`
	Machine    string             `json:"machine"`
	Time       time.Time          `json:"time"`
	Command    string             `json:"command"`

	file string
}

// Rows are all numbers of all models.
func Rows(e *eval.Evaluation, at time.Time, command string) []Row {
	var out []Row
	for _, m := range e.Models {
		for _, r := range m.Results {
			for _, x := range r.Metrics {
				out = append(out, Row{
					Task: r.Task, Version: r.Version, Shots: r.Shots, Metric: x.Name, Value: x.Value, StdErr: x.StdErr,
					N: x.N, Floors: x.Floors,
					Model: m.Name, Hash: m.Hash, Arch: m.Arch, Parameters: m.Parameters, Precision: m.Precision,
					Device: m.Device,
					Config: r.Config, Data: e.Data, Seed: e.Seed, Limit: e.Limit,
					Commit: e.Commit, Machine: e.Machine, Time: at, Command: command,
					file: cmp.Or(r.Group, r.Kind) + ".jsonl",
				})
			}
		}
	}
	return out
}

// SaveRows appends rows to DIR/GROUP.jsonl, or DIR/TASK.jsonl for a task without a group, one line each.
func SaveRows(dir string, rows []Row) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("row %s of %s: %w", r.Metric, r.Task, err)
		}
		f, err := os.OpenFile(filepath.Join(dir, r.file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.Write(append(line, '\n')); err != nil {
			_ = f.Close() // the write's error is more informative
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
