package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// example is the row of a step.
func example(step int) Row {
	return Row{Step: step, Total: 100, Percent: float64(step), Loss: 3.25, LossEMA: 3.5, Valid: math.NaN(),
		GradNorm: 0.5, LR: 1e-3, TokS: 1000, StepMS: 16,
		EvalS: math.NaN(), SaveS: 0.25, MFU: 0.5, MemGB: 1, Tokens: int64(step) << 32, Epoch: 0.5,
		Epochs: []float64{0.25, 1.5}, DataPos: int64(step) << 32, ETA: 9, Wall: 8,
		Time: 1.7e9, LambdaMin: 0.25, LambdaMax: 0.75, Lambda: []float64{0.25, 0.5},
		Warn: LossSpike | LambdaRange, Warnings: 2,
		Groups: Groups{{"q1", 0.25}, {"lambda", 1e-3}}}
}

// record writes rows 1 to n and returns the file's path and bytes.
func record(t *testing.T, n int) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	w, err := Open(vfs.OS{}, path, 0, func(*Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		r := example(i + 1)
		if err := w.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, b
}

func steps(rows []Row) (out []int) {
	for _, r := range rows {
		out = append(out, r.Step)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	path, _ := record(t, 3)
	rows, err := Read(path, func(s string) { t.Error(s) })
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, r := range rows {
		if got, want := fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", example(i+1)); got != want {
			t.Errorf("read  %s\nwrote %s", got, want)
		}
	}
	if got := rows[0].Warn.Names(); !slices.Equal(got, []string{"lambda", "loss"}) {
		t.Errorf("warnings %q", got)
	}
}

// TestEveryFlip flips every bit of a file: at most the two rows around the bit are lost, each is named, and no other
// changes. The file is in memory: there are 15,000 of them.
func TestEveryFlip(t *testing.T) {
	_, whole := record(t, 3)
	want := map[int]string{}
	for step := range 4 {
		want[step] = fmt.Sprintf("%+v", example(step))
	}
	for at := range whole {
		for bit := range 8 {
			b := slices.Clone(whole)
			b[at] ^= 1 << bit
			mem := vfstest.NewMem()
			f, err := mem.Create("/m")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(b); err != nil {
				t.Fatal(err)
			}
			named, good := 0, 0
			for l, err := range lines(mem, "/m") {
				var bad *LineError
				switch {
				case errors.As(err, &bad):
					if named++; !strings.HasPrefix(bad.Error(), "/m: line ") {
						t.Errorf("named %q", bad)
					}
				case err != nil:
					t.Fatal(err)
				case fmt.Sprintf("%+v", l.row) != want[l.row.Step]:
					t.Fatalf("bit %d of byte %d: row %+v", bit, at, l.row)
				default:
					good++
				}
			}
			if named == 0 || good < 1 {
				t.Fatalf("bit %d of byte %d: %d rows, %d named", bit, at, good, named)
			}
		}
	}
}

// Read skips a damaged line with a warning that names it, and says no more than that.
func TestReadWarns(t *testing.T) {
	path, b := record(t, 3)
	second := bytes.IndexByte(b, '\n') + 20
	b[second] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	var warned []string
	rows, err := Read(path, func(s string) { warned = append(warned, s) })
	if want := path + ": line 2: the checksum does not match; it is skipped"; err != nil ||
		!slices.Equal(steps(rows), []int{1, 3}) || !slices.Equal(warned, []string{want}) {
		t.Errorf("rows %v, %v, warned %q", steps(rows), err, warned)
	}
	if rows, err := Read(path, nil); err != nil || len(rows) != 2 {
		t.Errorf("without a listener: %d rows, %v", len(rows), err)
	}
	for _, err := range Rows(path) {
		var bad *LineError
		if err != nil && (!errors.As(err, &bad) || bad.Line != 2 || bad.Path != path || bad.Unwrap() == nil) {
			t.Error(err)
		}
	}
}

// TestOpenKeepsWhatIsGood: a damaged line takes nothing with it when a run continues, and rows of lost work are cut.
func TestOpenKeepsWhatIsGood(t *testing.T) {
	path, b := record(t, 9)
	lines := strings.SplitAfter(string(b), "\n")
	lines[2] = strings.Replace(lines[2], "3.25", "3.75", 1) // step 3
	lines[4] = strings.Repeat("x", 2<<20) + "\n"            // step 5
	lines[8] = lines[8][:20]                                // step 9, half written
	text := strings.Join(lines, "")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var kept []int
	var warned []string
	w, err := Open(vfs.OS{}, path, 7, func(r *Row) { kept = append(kept, r.Step) },
		func(s string) { warned = append(warned, s) })
	if err != nil {
		t.Fatal(err)
	}
	next := example(8)
	if err := w.Write(&next); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if !slices.Equal(kept, []int{1, 2, 4, 6, 7}) || !slices.Equal(warned, []string{
		path + ": line 3: the checksum does not match; it is skipped",
		fmt.Sprintf("%s: line 5: %d bytes, no row is longer than %d; it is skipped", path, 2<<20+1, 1<<20)}) {
		t.Errorf("kept %v, warned %q", kept, warned)
	}
	rows, err := Read(path, nil)
	if got := steps(rows); err != nil || !slices.Equal(got, []int{1, 2, 4, 6, 7, 8}) {
		t.Errorf("rows %v, %v", got, err)
	}
	after, _ := os.ReadFile(path)
	if want := strings.Join(lines[:7], ""); !strings.HasPrefix(string(after), want) {
		t.Error("what was there before is not as it was")
	}
}

// Rows that a resumed run should have and has not are named, with the damage in their place.
func TestOpenNamesWhatIsMissing(t *testing.T) {
	for what, c := range map[string]struct {
		change func(b []byte) []byte
		want   []string
	}{
		"whole":   {func(b []byte) []byte { return b }, nil},
		"no file": {nil, []string{"PATH: the rows of steps 1 to 3 are missing"}},
		"empty":   {func([]byte) []byte { return nil }, []string{"PATH: the rows of steps 1 to 3 are missing"}},
		"no last newline": {func(b []byte) []byte { return b[:len(b)-1] }, []string{
			"PATH: line 3: it does not end; it is removed", "PATH: the row of step 3 is missing"}},
	} {
		path, b := record(t, 3)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			if err := os.WriteFile(path, c.change(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var warned []string
		w, err := Open(vfs.OS{}, path, 3, func(*Row) {},
			func(s string) { warned = append(warned, strings.ReplaceAll(s, path, "PATH")) })
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if !slices.Equal(warned, c.want) {
			t.Errorf("%s: warned %q, want %q", what, warned, c.want)
		}
	}
}

// TestOldRows: rows without a checksum, as older programs wrote them, are read, also where newer ones follow.
func TestOldRows(t *testing.T) {
	old := `{"step":1,"total_steps":9,"pct":5,"loss":4.5,"loss_ema":4.5,"grad_norm":1,"lr":0.001,"tok_s":10,"step_ms":3,"mfu":0.1,"mem_gb":0.5,` +
		`"tokens_seen":1.5e+08,"epoch":0,"data_pos":1.5e+08,"skipped":0,"eta_s":1,"wall_s":1,"lambda":[0.2,0.3]}` + "\n"
	path, b := record(t, 2)
	b = append([]byte(old), b[strings.IndexByte(string(b), '\n')+1:]...)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	rows, err := Read(path, func(s string) { t.Error(s) })
	if err != nil || len(rows) != 2 || rows[0].Tokens != 150000000 || !math.IsNaN(rows[0].Valid) ||
		len(rows[0].Lambda) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	if err := os.WriteFile(path, append(b, old...), 0o644); err != nil { // its checksum must have been lost
		t.Fatal(err)
	}
	if rows, _ = Read(path, nil); len(rows) != 2 {
		t.Errorf("%d rows", len(rows))
	}
	// Only a good checksum obliges later rows to have one.
	damaged := strings.Replace(string(b[len(old):]), "3.25", "3.75", 1)
	for text, want := range map[string]int{old + old + old: 3, damaged + old: 1, old + damaged + old: 2} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if rows, err := Read(path, nil); err != nil || len(rows) != want {
			t.Errorf("%d rows of %d, %v: %s", len(rows), want, err, text)
		}
	}
}

// TestNoLink: a link in place of the file is refused, and what it points to is not cut.
func TestNoLink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "thesis"), filepath.Join(dir, "metrics.jsonl")
	if err := os.WriteFile(target, []byte("years of work"), 0o644); err != nil {
		t.Fatal(err)
	}
	vfstest.Symlink(t, target, link)
	if _, err := Open(vfs.OS{}, link, 0, func(*Row) {}, func(string) {}); !errors.Is(err, vfs.ErrLink) {
		t.Errorf("opened: %v", err)
	}
	if b, _ := os.ReadFile(target); string(b) != "years of work" {
		t.Errorf("left %q", b)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	r := example(7)
	buf := r.Append(nil)
	if n := testing.AllocsPerRun(10, func() { buf = r.Append(buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRows(f *testing.F) {
	r := example(1)
	f.Add(r.Append(nil))
	f.Add([]byte("{}\n{\"step\":1}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		mem := vfstest.NewMem()
		file, err := mem.Create("metrics.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(b); err != nil {
			t.Fatal(err)
		}
		var bad *LineError
		for _, err := range lines(mem, "metrics.jsonl") {
			if err != nil && !errors.As(err, &bad) {
				t.Fatal(err)
			}
		}
	})
}
