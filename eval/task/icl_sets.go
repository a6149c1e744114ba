package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/internal/vfs"
)

// iclSets are the paper's four.
var iclSets = []iclSet{
	{name: "trec", doc: "TREC questions, 6 classes", train: "icl/trec_train", test: "icl/trec_test",
		names: "trec_coarse", x: "Question: ", y: "Type:", between: between, classes: 2},
	{name: "trec_fine", doc: "TREC questions, 50 classes", train: "icl/trec_train", test: "icl/trec_test",
		names: "trec_fine", fine: true, x: "Question: ", y: "Type:", between: between, classes: 3},
	{name: "banking77", doc: "Banking-77 intents", train: "icl/banking77_train", test: "icl/banking77_test",
		x: "query: ", y: "intent:", between: between, classes: 4},
	{name: "clinc150", doc: "CLINC-150 intents", train: "icl/clinc150_train", test: "icl/clinc150_test",
		x: "utterance: ", y: "intent:", between: between, classes: 6},
}

const (
	between   = "\n==\n"
	maxLabels = 1 << 20 // bytes of icl/labels.json
)

// iclSet is one data set.
type iclSet struct {
	name, doc   string
	train, test string // files
	names       string // list of readable names in icl/labels.json
	fine        bool   // the label is label_fine
	x, y        string // before text and label
	between     string // after an example
	classes     int    // of the stand-in
}

type iclRow struct {
	Text  string `json:"text"`
	Label string `json:"label"`
	Fine  string `json:"label_fine"`
}

func (r *iclRow) Check() error { return eval.Missing("text", r.Text, "label", r.Label) }

// load reads or makes the set, draws the questions and orders the examples.
func (set iclSet) load(ctx context.Context, p *eval.Plan) (*iclTask, error) {
	n := p.Limited(p.Int("items"))
	g := p.Rand("examples")
	t := &iclTask{set: set}
	var err error
	if p.Data == "" {
		t.set.x, t.set.y, t.set.between = "Text: ", "Label:", "\n" // as in synthetic training text
		t.train, t.test = standInShots(g, set.classes)
	} else if t.train, t.test, err = set.read(ctx, p); err != nil {
		return nil, err
	}
	for _, x := range t.train {
		if !slices.Contains(t.labels, x.label) {
			t.labels = append(t.labels, x.label)
		}
	}
	slices.Sort(t.labels)
	if len(t.labels) < 2 {
		return nil, fmt.Errorf("%s has one class only, %q: there is nothing to tell apart",
			p.Source(set.test), t.labels)
	}
	t.train = rounds(g, t.train, t.labels)
	g.Shuffle(len(t.test), func(i, j int) { t.test[i], t.test[j] = t.test[j], t.test[i] })
	t.test = t.test[:min(n, len(t.test))]
	return t, nil
}

// read returns both splits with readable labels.
func (set *iclSet) read(ctx context.Context, p *eval.Plan) (train, test []iclItem, err error) {
	names, err := set.readable(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	for _, part := range []struct {
		file string
		to   *[]iclItem
	}{{set.train, &train}, {set.test, &test}} {
		rows, err := eval.ReadSet[iclRow](ctx, p, part.file, 0)
		if err != nil {
			return nil, nil, err
		}
		for i, r := range rows {
			label := r.Label
			if set.fine {
				label = r.Fine
			}
			if label == "" {
				return nil, nil, fmt.Errorf(`%s: row %d: field "label_fine" is missing`, part.file, i+1)
			}
			label = cmp.Or(names[label], strings.ReplaceAll(label, "_", " "))
			*part.to = append(*part.to, iclItem{strings.TrimSpace(r.Text), label})
		}
	}
	return train, test, nil
}

// readable maps codes to names, if the data folder has a list of them. A code whose name another one has too stands for
// itself.
func (set *iclSet) readable(ctx context.Context, p *eval.Plan) (map[string]string, error) {
	if set.names == "" {
		return nil, nil
	}
	path := filepath.Join(p.Data, "icl", "labels.json")
	b, err := vfs.ReadFile(vfs.OS{}, path, maxLabels)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = p.Uses(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(b, &lists); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var names map[string]string
	if err := json.Unmarshal(lists[set.names], &names); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, set.names, err)
	}
	count := map[string]int{}
	for _, n := range names {
		count[n]++
	}
	for code, n := range names {
		if count[n] > 1 {
			names[code] = code
		}
	}
	return names, nil
}

// standInShots makes one labelling task and takes its examples; the last 100 texts are the test.
func standInShots(g *rand.Rand, classes int) (train, test []iclItem) {
	s := data.NewShots(g, data.ShotOptions{Classes: classes, Bytes: 30_000})
	seen := map[string]bool{}
	var all []iclItem
	for _, part := range strings.Split(s.Prompt, "Text: ")[1:] {
		text, label, ok := strings.Cut(strings.TrimSpace(part), "\nLabel: ")
		if ok && !seen[text] {
			seen[text] = true
			all = append(all, iclItem{text, label})
		}
	}
	return all[:len(all)-100], all[len(all)-100:]
}
