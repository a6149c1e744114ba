package experiment

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// sharing are rows of two runs with everything that lines leave out when they can.
func sharing() []Row {
	var rows []Row
	for seed := range uint64(2) {
		base := Row{origin: origin{Experiment: "x", Run: "tiny-diff-s" + string('0'+rune(seed)),
			Size: "tiny", Arch: "diff", LR: 1e-3, Seed: seed, Steps: 10, Tokens: 20, Command: "antiphase compare " +
				strings.Repeat("long ", 100)}}
		add := func(measure string) *Row {
			r := base
			r.Measure = measure
			rows = append(rows, r)
			return &rows[len(rows)-1]
		}
		add("curve.a").Curve = [][2]float64{{10, 0.5}, {20, 0.25}}
		add("curve.b").Curve = [][2]float64{{10, 3}, {20, 0}}
		add("curve.c").Curve = [][2]float64{{20, 7}}
		for _, m := range []string{"lm.loss", "lm.bits"} {
			r := add(m)
			r.Task = &TaskInfo{Name: "lm", Kind: "lm", Question: "q", Config: map[string]any{"length": 256.0}}
			r.Items, r.Weights = []float64{1, 2}, []float64{3, 4}
		}
		add(Finished).Value = 5
	}
	return rows
}

// Lines leave out what the rows of their run share, and are read as the same rows; so are lines that repeat it all, and
// any number of files one after the other.
func TestRowFile(t *testing.T) {
	rows := sharing()
	b, err := Encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]int{"command": 2, `"run"`: 2, `"at"`: 4, `"config"`: 2} {
		if got := bytes.Count(b, []byte(what)); got != n {
			t.Errorf("%s is there %d times, want %d", what, got, n)
		}
	}
	long := sharing()[:1]
	// Over 1 MiB, and signs as they are.
	long[0].Command, long[0].Note = `antiphase compare <a> & "b"`, strings.Repeat("long ", 1<<18)
	text, err := Encode(long)
	if err != nil || !bytes.Contains(text, []byte(`compare <a> & \"b\"`)) {
		t.Errorf("%.300s, %v", text, err)
	}
	if got, err := ReadRows(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(got, long) {
		t.Errorf("a long line: %v", err)
	}
	described := make([]Row, 0, 8) // a question in two ways, each of them twice in turn, then each again
	for i, way := range []int{1, 2, 1, 2, 2, 1, 1, 2} {
		r := rows[i%2]
		r.Curve, r.Measure, r.Task = nil, "m",
			&TaskInfo{Kind: "lm", Question: "q", Place: way, Config: map[string]any{"length": float64(way)}}
		described = append(described, r)
	}
	if text, err = Encode(described); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRows(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(got, described) {
		t.Errorf("two ways to describe a question: %+v, %v", got, err)
	}
	var old bytes.Buffer
	for _, r := range rows {
		if err := json.NewEncoder(&old).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		text string
		want []Row
	}{
		"new":         {string(b), rows},
		"old":         {old.String(), rows},
		"old and new": {old.String() + string(b), append(sharing(), rows...)},
		"new and old": {string(b) + old.String(), append(sharing(), rows...)},
		"new twice":   {string(b) + string(b), append(sharing(), rows...)},
		"empty lines": {"\n" + strings.ReplaceAll(string(b), "\n", "\n \t\n"), rows},
	} {
		if got, err := ReadRows(strings.NewReader(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: other rows (%v)", name, err)
		}
	}
}

// A line whose run, task or tokens are nowhere before it is refused; so is a run that took the lines of another.
func TestRowFileCut(t *testing.T) {
	b, err := Encode(sharing())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	without := func(list ...int) string {
		kept := append([]string(nil), lines...)
		for _, i := range list {
			kept[i] = ""
		}
		return strings.Join(kept, "")
	}
	for i := range lines[:len(lines)-1] {
		rows, err := ReadRows(strings.NewReader(without(i)))
		if err == nil {
			err = wholeRuns(rows)
		}
		if err == nil {
			t.Errorf("without line %d the file is taken", i+1)
		}
	}
	const of = `{"run":"a","size":"tiny","arch":"diff",`
	for text, want := range map[string]string{
		without(0):    "line 1: not a row of an experiment: it has no run",
		without(3):    `line 4: task "q" of tiny-diff-s0 is not described before it is referred to`,
		without(2, 8): "",
		`{"size":"tiny","arch":"diff","measure":"lm.loss","value":1}`: "it has no run",
		of + `"measure":"curve.a","y":[1],"value":1}`: "line 1: curve.a of a has 1 values at 0 tokens, " +
			"and 0 pairs",
		of + `"measure":"curve.a","at":[1],"y":[1,2],"value":1}`:         "2 values at 1 tokens",
		of + `"measure":"c","at":[1],"y":[1],"curve":[[1,2]],"value":1}`: "and 1 pairs",
		of + `"measure":"lm.loss","task":{"question":"q"},"value":1}`:    "not described",

		of + `"measure":"lm.loss"}`: "line 1: not a row of an experiment: it has " +
			"no value",
		of + `"measure":"lm.loss","value":null}`:                       "it has no value",
		of + `"measure":"m","value":1,"stderr":-1}`:                    "is -1, must not be negative",
		of + `"measure":"m","value":1,"n":-2}`:                         "is -2, must not be negative",
		of + `"measure":"m","value":1,"lr":-3}`:                        "is -3, must not be negative",
		of + `"measure":"m","value":1,"tokens":-4}`:                    "is -4, must not be negative",
		of + `"measure":"m","value":1,"steps":-5}`:                     "is -5, must not be negative",
		of + `"measure":"m","value":1,"parameters":-6}`:                "is -6, must not be negative",
		of + `"measure":"m","value":1,"items":[1,2],"weights":[1,-7]}`: "is -7, must not be negative",

		lines[0] + `{"size":"tiny","measure":"lm.loss","value":1}`: "line 2: not a row of an experiment: it has no run",
	} {
		_, err := ReadRows(strings.NewReader(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// Two curves of a run are read as they were written, whichever of their tokens are the same: every pair of subsets of
// four points.
func TestCurvesOfARun(t *testing.T) {
	subset := func(mask int) (c [][2]float64) {
		for i := range 4 {
			if mask>>i&1 == 1 {
				c = append(c, [2]float64{float64(10 * i), float64(mask)})
			}
		}
		return c
	}
	for a := range 16 {
		for b := range 16 {
			rows := sharing()[:2]
			rows[0].Curve, rows[1].Curve = subset(a), subset(b)
			text, err := Encode(rows)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ReadRows(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(got, rows) {
				t.Errorf("%v and %v: %v, %v", rows[0].Curve, rows[1].Curve, got, err)
			}
		}
	}
}
