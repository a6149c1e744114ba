package experiment

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// committed are the rows of an experiment behind docs/evidence.md.
func committed(t *testing.T, name string) []Row {
	t.Helper()
	rows, err := ReadRowFiles(filepath.Join("..", "results", "evidence", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The number of parameters that the plan says of an experiment is that of its models.
func TestParametersOfThePlan(t *testing.T) {
	said := regexp.MustCompile(`\((\d+(?:\.(\d+))?)M parameters`)
	n := 0
	for _, c := range cells {
		m := said.FindStringSubmatch(c.what)
		if m == nil {
			continue
		}
		n++
		want, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		half := math.Pow10(-len(m[2])) / 2
		if got := float64(committed(t, c.name)[0].Parameters) / 1e6; math.Abs(got-want) > half {
			t.Errorf("%s: %s, but its first run has %gM", c.name, strings.TrimPrefix(m[0], "("), got)
		}
	}
	if n < 4 {
		t.Errorf("%d experiments say their parameters", n)
	}
}

// Every verdict on the page follows from its interval as it is printed.
func TestVerdictsFollowFromTheirFigures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "results", "evidence", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile(`\[(\S+), (\S+)\]`)
	n := 0
	for _, path := range paths {
		f := newFinal(committed(t, strings.TrimSuffix(filepath.Base(path), ".jsonl")))
		for i := range claims {
			c := &claims[i]
			x, ok := f.find(c, f.sizes[0])
			figure := c.figure(x)
			m := printed.FindStringSubmatch(figure)
			if !ok || m == nil {
				continue
			}
			n++
			read := x
			for k, end := range []*float64{&read.low, &read.high} {
				v, err := strconv.ParseFloat(strings.NewReplacer("−", "-", "×", "").Replace(m[k+1]), 64)
				if err != nil {
					t.Fatalf("%s: %v", figure, err)
				}
				if *end = v; c.percent {
					*end = v / 100
				}
			}
			if got, want := c.decide(read), c.decide(x); got != want {
				t.Errorf("%s, %s: claim %q %s; by %s it is %q", filepath.Base(path), figure, c.text, want, m[0], got)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d intervals", n)
	}
}
