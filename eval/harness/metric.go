package harness

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"

	"antiphase/eval"
)

// metric is one metric of a task, computed on answers after one chain of filters.
type metric struct {
	name, filter string
	better       eval.Better
	corpus       func(r *eval.Result) (eval.Mean, error) // of the whole set; nil for a mean over samples
	ignore       []*regexp2.Regexp                       // of exact_match
	lower, marks bool                                    // of exact_match: ignore case and punctuation
	numbers      bool                                    // of exact_match: ignore digits
}

// key is the metric's name in results: the harness's, without its name for no filter.
func (m *metric) key() string {
	if m.filter == "none" {
		return m.name
	}
	return m.name + "," + m.filter
}

func (m *metric) measure() eval.Measure {
	label := labels[m.name]
	if m.filter != "none" {
		label = strings.TrimSuffix(label, ", %") + " (" + m.filter + "), %"
	}
	return eval.Measure{Name: m.key(), Better: m.better, Label: label}
}

var labels = map[string]string{"acc": "accuracy, %", "acc_norm": "accuracy, per character, %",
	"acc_bytes": "accuracy, per byte, %", "exact_match": "exact match, %", "bits_per_byte": "bits per byte",
	"perplexity": "perplexity", "word_perplexity": "perplexity per word",
	"byte_perplexity": "perplexity per byte", "f1": "F1", "mcc": "Matthews correlation"}

// known lists the metrics of each kind, and how the harness aggregates them.
var known = map[string]map[string]string{
	"multiple_choice": {"acc": "mean", "acc_norm": "mean", "acc_bytes": "mean", "exact_match": "mean", "f1": "f1",
		"mcc": "matthews_corrcoef"},
	"loglikelihood": {"perplexity": "perplexity", "acc": "mean"},
	"loglikelihood_rolling": {"word_perplexity": "weighted_perplexity", "byte_perplexity": "weighted_perplexity",
		"bits_per_byte": "bits_per_byte"},
	"generate_until": {"exact_match": "mean"},
}

// usual metrics are the defaults if a file names none.
var usual = map[string][]string{"multiple_choice": {"acc", "acc_norm"}, "loglikelihood": {"perplexity", "acc"},
	"loglikelihood_rolling": {"word_perplexity", "byte_perplexity", "bits_per_byte"}, "generate_until": {"exact_match"}}

// readMetrics reads metric_list; each metric occurs once for every chain of filters.
func readMetrics(s *spec, folder string, v any) ([]metric, error) {
	list, ok := v.([]any)
	if v != nil && (!ok || len(list) == 0) {
		return nil, errors.New("metric_list: want a list")
	}
	if v == nil {
		for _, name := range usual[s.kind] {
			o := newObject()
			o.set("metric", name)
			list = append(list, o)
		}
	}
	var out []metric
	for _, x := range list {
		o, _ := x.(*object)
		if o == nil {
			return nil, errors.New("metric_list: want a list of mappings with metric")
		}
		m, err := readMetric(s, folder, &keys{object: o})
		if err != nil {
			return nil, fmt.Errorf("metric_list: %w", err)
		}
		for _, f := range s.filters {
			m.filter = f.name
			out = append(out, m)
		}
	}
	return out, nil
}

func readMetric(s *spec, folder string, k *keys) (m metric, err error) {
	if f, ok := k.at["metric"].(function); ok {
		return m, fmt.Errorf("the metric %s is Python of the task's own, which does not run here", f)
	}
	m.name = k.text("metric", "")
	usual, ok := known[s.kind][m.name]
	if !ok {
		return m, fmt.Errorf("the metric %q is not known for %s; there are %s", m.name, s.kind,
			strings.Join(sortedKeys(known[s.kind]), ", "))
	}
	m.better = eval.Higher
	if strings.Contains(m.name, "perplexity") || m.name == "bits_per_byte" {
		m.better = eval.Lower
	}
	m.corpus = totals[m.name]
	for _, key := range k.keys {
		switch v := k.at[key]; key {
		case "metric":
		case "weight_by_size":
			s.ignored = append(s.ignored, "weight_by_size in metric_list")
		case "higher_is_better":
			if v != (m.better == eval.Higher) {
				return m, fmt.Errorf("%s: higher_is_better is %v", m.name, v)
			}
		case "aggregation":
			if f, ok := v.(function); ok {
				total, err := find(s, folder, "aggregation", f, totalFunctions)
				if err != nil {
					return m, err
				}
				m.corpus = func(r *eval.Result) (eval.Mean, error) { return eval.OfDecisions(r, total.apply) }
			} else if v != usual && !(v == "nanmean" && usual == "mean") {
				return m, fmt.Errorf("%s: aggregation is %v; here it is %s", m.name, v, usual)
			}
		case "ignore_case":
			m.lower = v == true
		case "ignore_punctuation":
			m.marks = v == true
		case "ignore_numbers":
			m.numbers = v == true
		case "regexes_to_ignore":
			for _, pattern := range texts(v) {
				r, err := compile(pattern)
				if err != nil {
					return m, err
				}
				m.ignore = append(m.ignore, r)
			}
		default:
			return m, fmt.Errorf("%s: key %q is not supported", m.name, key)
		}
	}
	return m, k.err
}

// match is exact_match: 1 if the answer equals one of the targets.
func (m *metric) match(said string, targets []string) (float64, error) {
	said, err := m.normal(said)
	if err != nil {
		return 0, err
	}
	for _, t := range targets {
		t, err := m.normal(t)
		if err != nil {
			return 0, err
		}
		if t == said {
			return 1, nil
		}
	}
	return 0, nil
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// normal removes what is ignored.
func (m *metric) normal(s string) (string, error) {
	var err error
	for _, r := range m.ignore {
		if s, err = r.Replace(s, "", -1, -1); err != nil {
			return "", err
		}
	}
	if m.lower {
		s = lower(s)
	}
	drop := ""
	if m.marks {
		drop += punctuation
	}
	if m.numbers {
		drop += "0123456789"
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(drop, r) {
			return -1
		}
		return r
	}, s), nil
}

// totals are metrics that are not means over samples.
var totals = map[string]func(r *eval.Result) (eval.Mean, error){
	"perplexity":      exponential("nll"),
	"word_perplexity": exponential("nll_per_word"),
	"byte_perplexity": exponential("nll_per_byte"),
	"f1": func(r *eval.Result) (eval.Mean, error) {
		return eval.OfDecisions(r, func(gold, said []int) float64 { return eval.F1(gold, said, 1) })
	},
	"mcc": func(r *eval.Result) (eval.Mean, error) { return eval.OfDecisions(r, eval.Matthews) },
}

// exponential is a perplexity: e to the mean of a loss.
func exponential(loss string) func(r *eval.Result) (eval.Mean, error) {
	return func(r *eval.Result) (eval.Mean, error) { return eval.MeanOf(r.Answers, loss).Exp(), nil }
}

// finish adds the metrics of the whole set, and orders all as in the file.
func (s *spec) finish(r *eval.Result) error {
	for _, m := range s.metrics {
		if m.corpus == nil {
			continue
		}
		x, err := m.corpus(r)
		if err != nil {
			return err
		}
		if !eval.Finite(x.Value) {
			return fmt.Errorf("%s is %g: the model has diverged, or its weights are damaged", m.name, x.Value)
		}
		r.Add(m.key(), labels[m.name], m.better, x)
	}
	place := func(m eval.Metric) int {
		i := slices.IndexFunc(s.metrics, func(x metric) bool { return x.key() == m.Name })
		if i < 0 {
			i = len(s.metrics)
		}
		return i
	}
	slices.SortStableFunc(r.Metrics, func(a, b eval.Metric) int { return place(a) - place(b) })
	return nil
}
