package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// goldenFile is what the harness itself asked for the files of testdata/tasks, what was answered, and how it scored
// that.
type goldenFile struct {
	Origin string
	Tasks  []goldenTask
}

type goldenTask struct {
	Task     string
	Requests []goldenRequest
	Samples  []struct {
		Metric string
		Values []float64
	}
	Metrics map[string]float64
}

type goldenRequest struct {
	Doc     int
	Args    []string
	LogProb float64
	Greedy  bool
	Text    *string
	Until   []string
}

func readGolden(t *testing.T) goldenFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// replay answers as the golden file does, and notes what was asked.
type replay struct {
	t       *testing.T
	answers map[string]goldenRequest
	asked   []string
}

func newReplay(t *testing.T, g *goldenTask) *replay {
	r := &replay{t: t, answers: map[string]goldenRequest{}}
	for _, q := range g.Requests {
		r.answers[fmt.Sprintf("%q", q.Args)] = q
	}
	return r
}

func (r *replay) find(args ...string) goldenRequest {
	key := fmt.Sprintf("%q", args)
	r.asked = append(r.asked, key)
	q, ok := r.answers[key]
	if !ok {
		r.t.Errorf("the harness asks nothing like %s", key)
	}
	return q
}

func (r *replay) Loglikelihood(_ context.Context, reqs []eval.Continuation) ([]eval.Score, error) {
	out := make([]eval.Score, len(reqs))
	for i, q := range reqs {
		g := r.find(q.Context, q.Text)
		out[i] = eval.Score{LogProb: g.LogProb, Greedy: g.Greedy, Tokens: 1}
	}
	return out, nil
}

func (r *replay) LoglikelihoodRolling(_ context.Context, texts []string) ([]eval.Score, error) {
	out := make([]eval.Score, len(texts))
	for i, s := range texts {
		out[i] = eval.Score{LogProb: r.find(s).LogProb, Tokens: 1}
	}
	return out, nil
}

func (r *replay) GenerateUntil(_ context.Context, reqs []eval.Generation) ([]string, error) {
	out := make([]string, len(reqs))
	for i, q := range reqs {
		g := r.find(q.Prompt)
		if !slices.Equal(g.Until, q.Until) {
			r.t.Errorf("stops at %q, the harness at %q", q.Until, g.Until)
		}
		if g.Text != nil {
			out[i] = *g.Text
		}
	}
	return out, nil
}

// run puts one task to a model.
func run(t *testing.T, task eval.Task, lm eval.LM, opt eval.Options) *eval.Result {
	t.Helper()
	target := eval.Target{Model: eval.Model{Name: "stub", Context: 4096}, LM: lm}
	ev, err := eval.Run(context.Background(), []eval.Target{target}, []eval.Task{task}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &ev.Models[0].Results[0]
}

func tasksOf(t *testing.T, path string) map[string]eval.Task {
	t.Helper()
	list, _, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]eval.Task{}
	for _, x := range list {
		out[x.Name] = x
	}
	return out
}

// Prompts, targets, scores of samples and metrics are the harness's own: its classes wrote the golden file.
func TestHarness(t *testing.T) {
	tasks := tasksOf(t, filepath.Join("testdata", "tasks"))
	golden := readGolden(t)
	if len(golden.Tasks) != len(tasks) || len(tasks) < 8 {
		t.Errorf("%d golden tasks, %d files", len(golden.Tasks), len(tasks))
	}
	for _, g := range golden.Tasks {
		t.Run(g.Task, func(t *testing.T) {
			lm := newReplay(t, &g)
			r := run(t, tasks[g.Task], lm, eval.Options{Shots: -1})
			var want []string
			for _, q := range g.Requests {
				want = append(want, fmt.Sprintf("%q", q.Args))
			}
			slices.Sort(want)
			slices.Sort(lm.asked)
			if !slices.Equal(lm.asked, want) {
				t.Errorf("%d requests, the harness has %d, or others", len(lm.asked), len(want))
			}
			for key, value := range g.Metrics {
				m, ok := r.Metric(ours(key))
				if !ok || !(math.Abs(m.Value-value) <= 1e-12*math.Abs(value)) {
					t.Errorf("%s is %v (%v), the harness has %v", key, m.Value, ok, value)
				}
			}
			for _, s := range g.Samples {
				for i, want := range s.Values {
					got, ok := r.Answers[i].Values[ours(s.Metric)]
					if s.Metric == "perplexity,none" {
						got, ok = -r.Answers[i].Values["nll"], true
					}
					if !ok || got != want {
						t.Errorf("%s of document %d is %v, the harness has %v", s.Metric, i, got, want)
					}
				}
			}
		})
	}
}

// ours is a metric's name without the harness's name for no filter.
func ours(key string) string {
	if n := len(key) - len(",none"); n > 0 && key[n:] == ",none" {
		return key[:n]
	}
	return key
}

// Draws are those of Python 3.11's random.Random(seed).sample(range(n), k), twice.
func TestPythonSample(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		n, k int
		want [2][]int
	}{
		{1234, 40, 5, [2][]int{{28, 7, 0, 5, 37}, {2, 5, 6, 22, 15}}},
		{1234, 8, 3, [2][]int{{7, 0, 6}, {1, 6, 4}}},
		{7, 1000, 7, [2][]int{{331, 970, 154, 404, 666, 49, 74}, {840, 548, 96, 374, 596, 59, 931}}},
		{1<<40 + 5, 300, 20, [2][]int{{258, 264, 137, 14, 271, 23, 84, 40, 68, 122, 70, 126, 194, 62, 283, 117,
			239, 28, 57, 218}, {22, 168, 224, 146, 66, 48, 90, 173, 29, 114, 236, 59, 76, 280, 112, 65, 296,
			239, 51, 264}}},
		{0, 21, 21, [2][]int{{12, 13, 1, 8, 16, 15, 6, 20, 4, 7, 5, 9, 3, 2, 11, 18, 0, 14, 17, 19, 10},
			{3, 2, 10, 15, 20, 11, 6, 5, 9, 18, 16, 8, 7, 12, 14, 4, 19, 0, 13, 17, 1}}},
		{1234, 100000, 6, [2][]int{{57767, 15315, 981, 11880, 76313, 4577},
			{88023, 90844, 11001, 12900, 46482, 31039}}},
	} {
		g := newPython(c.seed)
		for i, want := range c.want {
			if got := g.sample(c.n, c.k); !slices.Equal(got, want) {
				t.Errorf("sample %d of seed %d, %d of %d: %v, Python has %v", i, c.seed, c.k, c.n, got, want)
			}
		}
	}
}

// Both of Python's algorithms, on each side of every bound between them: for k, the CRC-32 of the lines
//
//	"%d %s %s\n" % (n, g.sample(range(n), k), g.sample(range(n), k))  with g = random.Random(1000*n+k)
//
// for n from max(k, 1) to 300, as Python 3.11 has them.
func TestPythonSampleOfEverySize(t *testing.T) {
	list := func(x []int) string { return strings.ReplaceAll(fmt.Sprint(x), " ", ", ") }
	for k, want := range []uint32{
		0x112709c6, 0xe2e5d2b2, 0x5ba62fa5, 0x2fa77182, 0xee69cb69, 0x4c7a149d, 0xf03bcbea, 0x2342019c,
		0x76dc33a9, 0x4cd2bdff, 0x8510ce9c, 0xbcc317dd, 0x0c10093e, 0xb1885982, 0xde4ae777, 0x47592c79,
		0xabc24dff, 0x7023110f, 0xde305368, 0x811a49c2, 0x5394564a, 0xd572bb85, 0x7a72948c, 0x1f20d0c0,
		0x17a63853, 0xffa0cdaa, 0xfafc1df7, 0x6aa85711, 0x822d9e1d, 0x3661c9c0, 0x611f77cc,
	} {
		sum := crc32.NewIEEE()
		for n := max(k, 1); n <= 300; n++ {
			g := newPython(uint64(1000*n + k))
			first := list(g.sample(n, k))
			fmt.Fprintf(sum, "%d %s %s\n", n, first, list(g.sample(n, k)))
		}
		if sum.Sum32() != want {
			t.Errorf("samples of %d: %#08x, Python has %#08x", k, sum.Sum32(), want)
		}
	}
}
