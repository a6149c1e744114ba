package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Names of the files in an output folder.
const (
	File        = "evaluation.json" // the whole evaluation, see Evaluation
	HarnessFile = "results.json"    // in each model's folder, with lm-evaluation-harness's keys
)

// Harness is a model's results under the keys of lm-evaluation-harness, so that whatever reads its results reads ours.
type Harness struct {
	Results map[string]map[string]any  `json:"results"` // task → "acc,none", "acc_stderr,none", alias
	Configs map[string]map[string]any  `json:"configs"`
	Version map[string]int             `json:"versions"`
	Shots   map[string]int             `json:"n-shot"`
	Higher  map[string]map[string]bool `json:"higher_is_better"`
	Samples map[string]map[string]int  `json:"n-samples"`
	Config  map[string]any             `json:"config"`
	Groups  map[string][]string        `json:"group_subtasks"`
	Means   map[string]map[string]any  `json:"groups,omitempty"`
	Date    string                     `json:"date,omitempty"`
	Commit  string                     `json:"git_hash,omitempty"`
	Name    string                     `json:"model_name"`
}

// filter is the harness's name for "no filter on the answers", which is part of its metric keys.
const filter = ",none"

// Harness gives one model's results.
func (e *Evaluation) Harness(m *Judged) *Harness {
	h := &Harness{
		Results: map[string]map[string]any{}, Configs: map[string]map[string]any{}, Version: map[string]int{}, Shots: map[string]int{},
		Higher: map[string]map[string]bool{}, Samples: map[string]map[string]int{}, Groups: map[string][]string{},
		Config: map[string]any{"model": "antiphase", "model_args": m.Name, "model_num_parameters": m.Parameters,
			"limit": e.Limit, "random_seed": e.Seed, "fewshot_seed": e.Seed},
		Date: e.Date, Commit: e.Commit, Name: m.Name,
	}
	for _, g := range m.Groups {
		if h.Means == nil {
			h.Means = map[string]map[string]any{}
		}
		x := g.Metric
		h.Means[g.Group] = map[string]any{"alias": g.Group, x.Name + filter: x.Value, x.Name + "_stderr" + filter: x.StdErr}
	}
	for _, r := range m.Results {
		values := map[string]any{"alias": r.Task}
		higherIs := map[string]bool{}
		for _, x := range r.Metrics {
			values[x.Name+filter] = x.Value
			values[x.Name+"_stderr"+filter] = x.StdErr
			if x.Better != neither {
				higherIs[x.Name] = x.Better == higher
			}
		}
		config := map[string]any{"task": r.Task, "num_fewshot": r.Shots, "metadata": map[string]any{"version": r.Version}}
		for k, v := range r.Config {
			config[k] = v
		}
		h.Results[r.Task], h.Configs[r.Task], h.Higher[r.Task] = values, config, higherIs
		h.Version[r.Task], h.Shots[r.Task] = r.Version, r.Shots
		h.Samples[r.Task] = map[string]int{"original": r.N, "effective": r.N}
		if r.Group != "" {
			h.Groups[r.Group] = append(h.Groups[r.Group], r.Task)
		}
	}
	return h
}

// JSON writes the results.
func (h *Harness) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(h)
}

// HarnessJSON writes one model's results as they are, and those of several as {"models": [...], "paired": [...]}.
func (e *Evaluation) HarnessJSON(w io.Writer) error {
	if len(e.Models) == 1 {
		return e.Harness(&e.Models[0]).JSON(w)
	}
	var all struct {
		Models []*Harness `json:"models"`
		Paired []Paired   `json:"paired"`
	}
	for i := range e.Models {
		all.Models = append(all.Models, e.Harness(&e.Models[i]))
	}
	all.Paired = e.Paired
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(all)
}

// WriteHarness writes each model's results into its folder under dir.
func (e *Evaluation) WriteHarness(dir string) error {
	for i := range e.Models {
		m := &e.Models[i]
		path := filepath.Join(dir, fileName(m.Name), HarnessFile)
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := e.Harness(m).JSON(f); err != nil {
			f.Close()
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
