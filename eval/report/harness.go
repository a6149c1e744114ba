package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"antiphase/eval"
	"antiphase/internal/vfs"
)

// HarnessFile is written to each model's folder of an output, with lm-evaluation-harness's keys.
const HarnessFile = "results.json"

// Harness is a model's results under lm-evaluation-harness's keys, so that readers of its results can read ours.
// Stand-ins keep their own names and never appear under the name of a harness task.
type Harness struct {
	Results map[string]map[string]any  `json:"results"` // task → "acc,none", "acc_stderr,none", alias
	Configs map[string]map[string]any  `json:"configs"`
	Version map[string]int             `json:"versions"`
	Shots   map[string]int             `json:"n-shot"`
	Higher  map[string]map[string]bool `json:"higher_is_better"`
	Samples map[string]map[string]int  `json:"n-samples"`
	Config  map[string]any             `json:"config"`
	Groups  map[string][]string        `json:"group_subtasks"`
	Date    string                     `json:"date,omitempty"`
	Commit  string                     `json:"git_hash,omitempty"`
	Name    string                     `json:"model_name"`
	Skipped map[string]string          `json:"skipped,omitempty"` // task → why the model cannot be asked it
}

// noFilter is the harness's name for "no filter on the answers". Its metric keys end with the name of a filter.
const noFilter = "none"

// NewHarness returns one model's results. A task asked under several settings has one key for each, which names the
// differences: none of them is the default, and their order does not matter.
func NewHarness(e *eval.Evaluation, m *eval.Judged) *Harness {
	h := &Harness{
		Results: map[string]map[string]any{}, Configs: map[string]map[string]any{}, Version: map[string]int{},
		Shots:  map[string]int{},
		Higher: map[string]map[string]bool{}, Samples: map[string]map[string]int{}, Groups: map[string][]string{},
		Config: map[string]any{"model": harnessModel, "model_args": m.Name, "model_num_parameters": m.Parameters,
			"model_hash": m.Hash, "dtype": m.Precision, "device": m.Device, "limit": e.Limit, "random_seed": e.Seed,
			"fewshot_seed": e.Seed},
		Date: e.Date, Commit: e.Commit, Name: m.Name,
	}
	for _, s := range e.Skipped {
		if s.Model == m.Name {
			if h.Skipped == nil {
				h.Skipped = map[string]string{}
			}
			h.Skipped[s.Task] = s.Why
		}
	}
	titles, asked := titles(e), map[string]int{}
	for _, q := range e.Questions() { // of any model: keys are the same in all files of a store
		asked[q.Task]++
	}
	for i := range m.Results {
		r := &m.Results[i]
		key := r.Task
		if asked[key] > 1 {
			key += " " + cmp.Or(strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(titles[r.Question], r.Kind),
				standInMark)), "(1)")
		}
		values := map[string]any{"alias": key}
		higherIs := map[string]bool{}
		for _, x := range r.Metrics {
			name, filter, named := strings.Cut(x.Name, ",")
			if !named {
				filter = noFilter
			}
			values[name+","+filter] = x.Value
			values[name+"_stderr,"+filter] = x.StdErr
			for floor, v := range x.Floors {
				values[name+"_"+floor+","+filter] = v
			}
			if x.Better != eval.Neither {
				higherIs[x.Name] = x.Better == eval.Higher
			}
		}
		h.Results[key], h.Configs[key], h.Higher[key] = values, harnessConfig(r), higherIs
		h.Version[key], h.Shots[key] = r.Version, r.Shots
		h.Samples[key] = map[string]int{"original": r.N, "effective": r.N}
		if r.Group != "" {
			h.Groups[r.Group] = append(h.Groups[r.Group], key)
		}
	}
	return h
}

// harnessConfig returns the settings of a result; seed and limit too, since a store may hold several.
func harnessConfig(r *eval.Result) map[string]any {
	config := map[string]any{"task": r.Task, "num_fewshot": r.Shots, "metadata": map[string]any{"version": r.Version}}
	for k, v := range r.Config {
		config[k] = v
	}
	config["seed"], config["limit"] = r.Seed, r.Limit
	if r.Replicate != "" {
		config["replicate"] = r.Replicate
	}
	return config
}

// HarnessJSON writes the results of one model directly, and those of several as {"models": [...], "paired": [...]}.
func HarnessJSON(w io.Writer, e *eval.Evaluation) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if len(e.Models) == 1 {
		return enc.Encode(NewHarness(e, &e.Models[0]))
	}
	var all struct {
		Models []*Harness    `json:"models"`
		Paired []eval.Paired `json:"paired"`
	}
	for i := range e.Models {
		all.Models = append(all.Models, NewHarness(e, &e.Models[i]))
	}
	all.Paired = e.Paired
	return enc.Encode(all)
}

// WriteHarness writes each model's results into its folder under dir. The files are rewritten from the whole store; the
// file of a model that has another name now is removed.
func WriteHarness(dir string, e *eval.Evaluation) error {
	names := folderNames(e)
	for i := range e.Models {
		m := &e.Models[i]
		path := filepath.Join(dir, names[i], HarnessFile)
		b, err := json.MarshalIndent(NewHarness(e, m), "", "  ")
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		temp := fmt.Sprintf("%s.%d", path, os.Getpid()) // another process may be writing the same
		if err := os.WriteFile(temp, append(b, '\n'), 0o644); err != nil {
			return err
		}
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return removeLeft(dir, e, names)
}

// maxHarness bounds the bytes of a HarnessFile that may be one of ours.
const maxHarness = 64 << 20

// removeLeft removes files of models whose folder has changed. A model that another process has added meanwhile keeps
// its file.
func removeLeft(dir string, e *eval.Evaluation, names []string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", HarnessFile))
	if err != nil {
		return err
	}
	for _, path := range files {
		if slices.Contains(names, filepath.Base(filepath.Dir(path))) {
			continue
		}
		var h struct {
			Config struct {
				Model  string `json:"model"`
				Hash   string `json:"model_hash"`
				Dtype  string `json:"dtype"`
				Device string `json:"device"`
			} `json:"config"`
		}
		b, err := vfs.ReadFile(vfs.OS{}, path, maxHarness)
		if err != nil || json.Unmarshal(b, &h) != nil || h.Config.Model != harnessModel {
			continue // not one of ours
		}
		if !slices.ContainsFunc(e.Models, func(m eval.Judged) bool {
			return m.Hash == h.Config.Hash && m.Precision == h.Config.Dtype && m.Device == h.Config.Device
		}) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(path)) // fails if it holds anything else
	}
	return nil
}

// harnessModel is the model field of the file.
const harnessModel = "antiphase"

// folderNames are unique folder names for the models.
func folderNames(e *eval.Evaluation) []string {
	var out []string
	for i := range e.Models {
		m := &e.Models[i]
		name := fileName(m.Name)
		if slices.Contains(out, name) {
			name += "_" + m.Hash[:min(8, len(m.Hash))]
		}
		for n := 2; slices.Contains(out, name); n++ {
			name = fmt.Sprintf("%s_%d", fileName(m.Name), n)
		}
		out = append(out, name)
	}
	return out
}

// fileName turns a model's name into a file name that is valid on any system.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>| `, r) || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, s)
	if strings.Trim(s, ".") == "" {
		return "_" + s
	}
	for len(s) > 128 {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}
