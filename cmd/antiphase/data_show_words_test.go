package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"antiphase/train"
)

// int32s are the numbers of a binary file.
func int32s(t *testing.T, path string) []int32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int32, len(b)/4)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, all); err != nil {
		t.Fatal(err)
	}
	return all
}

// showFlags are flags of data show, and the steps they mean or what is said of them.
var showFlags = []struct {
	f           dataShowFlags
	first, last int
	says        string
}{
	{dataShowFlags{step: 3, split: "train", row: -1}, 3, 3, ""},
	{dataShowFlags{steps: "2:5", split: "valid", row: -1}, 2, 5, ""},
	{dataShowFlags{steps: "2:2", split: "train", row: 0}, 2, 2, ""},
	{dataShowFlags{split: "train"}, 0, 0, "give --step or --steps"},
	{dataShowFlags{step: 1, steps: "1:2", split: "train"}, 0, 0, "give --step or --steps"},
	{dataShowFlags{steps: "5:2", split: "train"}, 0, 0, "want the first at least 1"},
	{dataShowFlags{steps: "0:2", split: "train"}, 0, 0, "want the first at least 1"},
	{dataShowFlags{step: -1, split: "train"}, 0, 0, "want the first"},
	{dataShowFlags{steps: "3", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{steps: "a:b", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{steps: "a:5", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{steps: "5:b", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{steps: "5:", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{steps: ":5", split: "train"}, 0, 0, "want FIRST:LAST"},
	{dataShowFlags{step: 1, split: "train", row: -2}, 0, 0, "--row: is -2"},
	{dataShowFlags{step: 1, split: "test"}, 0, 0, "--split"},
	{dataShowFlags{step: 1, split: "train", out: "o", json: true, row: -1}, 0, 0, "--out"},
	{dataShowFlags{step: 1, split: "train", out: "o", row: 0}, 0, 0, "--out"},
	{dataShowFlags{step: 1, split: "train", out: "o", row: -1}, 1, 1, ""},
}

// Which steps, rows and forms data show takes.
func TestDataShowFlags(t *testing.T) {
	for _, x := range showFlags {
		err := x.f.check()
		if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) || err == nil &&
			(x.f.first != x.first || x.f.last != x.last) {
			t.Errorf("%+v: %v", x.f, err)
		}
	}
	for row, want := range map[int][]int{-1: {0, 1, 2}, 0: {0}, 1: {1}, 2: {2}, 3: nil} {
		if got := (&dataShowFlags{row: row}).rows(&train.Rows{B: 3}); !slices.Equal(got, want) {
			t.Errorf("row %d is %v of 3", row, got)
		}
	}
	nanoRun(t)
	if code, _, errs := ran(t, "data", "show", "run", "--steps", "1:2", "--out", "rows.bin"); code != 0 {
		t.Fatal(errs)
	}
	all := int32s(t, "rows.bin")
	if len(all) != 8+2*3*4*32 || !slices.Equal(all[:8], []int32{0x57525041, 1, 1, 2, 4, 32, 3, 260}) {
		t.Fatalf("%d numbers: %v", len(all), all[:8])
	}
	code, out, errs := ran(t, "data", "show", "run", "--step", "2", "--row", "3", "--json")
	var s shownStep
	if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil || s.Step != 2 ||
		!slices.Equal(s.Rows, []int{3}) || len(s.Text) != 1 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	second := all[8+3*128:] // ids, targets and starts of step 2
	for k, list := range [][][]int32{s.IDs, s.Targets, s.Starts} {
		if !slices.Equal(list[0], second[k*128+3*32:k*128+4*32]) {
			t.Errorf("array %d of row 3 differs between the forms", k)
		}
	}
	if i := slices.IndexFunc(s.Targets[0][:31], func(x int32) bool { return x >= 0 }); i < 0 ||
		s.Targets[0][i] != s.IDs[0][i+1] {
		t.Error("targets are not the next tokens")
	}
	for args, says := range map[string]string{"--step 3": "the run's last is 2",
		"--step 1 --row 4": "a step has rows 0 to 3"} {
		if code, _, errs := ran(t, append([]string{"data", "show", "run"},
			strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
	if !isRows("rows.bin") || isRows("run/recipe.json") || isRows("none") {
		t.Error("files of rows")
	}
}

// Rows as text, as JSON and in binary are the same, of every step, and of the held-out text.
func TestDataShowForms(t *testing.T) {
	nanoRun(t)
	for _, x := range []struct {
		split string
		rows  int
	}{{"train", 4}, {"valid", 4}} {
		args := []string{"data", "show", "run", "--steps", "1:2", "--split", x.split}
		_, text, _ := ran(t, args...)
		code, out, errs := ran(t, append(args, "--json")...)
		if code2, _, errs2 := ran(t, append(args, "--out", "rows.bin")...); code != 0 || code2 != 0 {
			t.Fatal(errs, errs2)
		}
		all := int32s(t, "rows.bin")
		want, flat := "", []int32{}
		for d, step := json.NewDecoder(strings.NewReader(out)), 1; d.More(); step++ {
			var s shownStep
			if err := d.Decode(&s); err != nil || s.Step != step || len(s.Rows) != x.rows || len(s.IDs) != x.rows ||
				len(s.Targets) != x.rows || len(s.Starts) != x.rows {
				t.Fatalf("%+v, %v", s, err)
			}
			for i, row := range s.Rows {
				var text strings.Builder
				for _, id := range s.IDs[i] {
					if id == 256 {
						text.WriteString("<|endoftext|>")
					} else {
						text.WriteByte(byte(id))
					}
				}
				if row != i || s.Text[i] != text.String() {
					t.Errorf("row %d: %d, %q, want %q", i, row, s.Text[i], text.String())
				}
				want += fmt.Sprintf("--- step %d, row %d\n%s\n", step, row, text.String())
			}
			for _, list := range [][][]int32{s.IDs, s.Targets, s.Starts} {
				flat = append(flat, slices.Concat(list...)...)
			}
		}
		if text != want || !slices.Equal(all[8:], flat) || all[2] != 1 || all[3] != 2 {
			t.Errorf("%s: %q, want %q; binary %v", x.split, text, want, slices.Equal(all[8:], flat))
		}
	}
	_, a, _ := ran(t, "data", "show", "run", "--step", "1")
	if _, b, _ := ran(t, "data", "show", "run", "--step", "1", "--split", "valid"); a == b {
		t.Error("the held-out rows are those of training")
	}
	for args, says := range map[string]string{"--step 9 --split valid": "step 9: the held-out loss has 8 micro-batches",
		"--steps 2:3": "step 3: the run's last is 2"} {
		if code, _, errs := ran(t, append([]string{"data", "show", "run"},
			strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d, %s", args, code, errs)
		}
	}
}
