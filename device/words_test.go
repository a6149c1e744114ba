package device

import (
	"os"
	"slices"
	"strings"
	"testing"

	"antiphase/tensor"
)

// What a wrong call is told, op by op: the op, its contract, and every tensor it was given by name. The first tensor of
// the op, in the order of their names, that may not be absent is.
func TestChecksInWords(t *testing.T) {
	want, err := os.ReadFile("testdata/checks.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, c := range append(rowChecks(), opChecks()...) {
		var names []string
		for name := range c.args {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			right := *c.args[name]
			*c.args[name] = none
			s := text(c.call)
			*c.args[name] = right
			if s != "" {
				got.WriteString(s + "\n")
				break
			}
		}
	}
	lines, wanted := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range lines {
		if i >= len(wanted) || line != wanted[i] {
			t.Fatalf("line %d of testdata/checks.txt: an op says\n%s", i+1, line)
		}
	}
	if len(lines) != len(wanted) {
		t.Errorf("%d texts, testdata/checks.txt has %d", len(lines), len(wanted))
	}
}

// Rows may lie further apart than they are wide, in every tensor that has several. Only the optimiser's must be dense.
func TestPitchIsFree(t *testing.T) {
	var refused []string
	for _, c := range append(rowChecks(), opChecks()...) {
		for name, place := range c.args {
			right := *place
			if place.Ld += 3; right.Rows > 1 && text(c.call) != "" {
				refused = append(refused, c.name+": "+name)
			}
			*place = right
		}
	}
	if len(refused) > 0 {
		t.Errorf("refused with a pitch: %q", refused)
	}
	wide := func(rows, cols int) tensor.Tensor { return a16(rows, cols+3).Columns(0, cols) }
	for name, f := range map[string]func(){
		"a product": func() { CheckMatMul(wide(6, 5), wide(6, 8), wide(8, 5), MatMul{}, bf16) },
		"its transpose": func() {
			CheckMatMul(wide(6, 5), wide(8, 6), wide(5, 8), MatMul{TransA: true, TransB: true}, bf16)
		},
		"a sum":   func() { CheckAdd(wide(6, 5), wide(6, 5)) },
		"a map":   func() { CheckAttentionProbs(f32(2, 3), wide(6, 8), wide(6, 4), Probs{T: 3, D: 4, QHead: 1}, bf16) },
		"a zero":  func() { CheckZero(wide(3, 2)) },
		"one row": func() { x := a16(1, 8); x.Ld = 3; CheckZero(x) }, // it has no second row to overlap
	} {
		if s := text(f); s != "" {
			t.Errorf("%s: %s", name, s)
		}
	}
	adam := &AdamW{W: wide(2, 5), M: f32(2, 5), V: f32(2, 5), G: f32(2, 5), Rate: f32(1, 3), GradSq: f32(1, 1)}
	if text(func() { adam.Check(bf16) }) == "" {
		t.Error("an update of weights with a pitch is allowed")
	}
	if adam.W = a16(2, 5); text(func() { adam.Check(bf16) }) != "" {
		t.Error("an update of dense weights is not")
	}
	// One head of eight is all that eight columns hold, whatever their pitch.
	if s := text(func() {
		CheckAttentionProbs(f32(2, 3), wide(6, 8), wide(6, 8), Probs{T: 3, D: 8, QHead: 1},
			bf16)
	}); s == "" {
		t.Error("a head in the padding is allowed")
	}
}

// What two tensors of one type may be: sums of any floats, everything else one of the device's two.
func TestTypesOfPairs(t *testing.T) {
	other := tensor.F64 // neither of the device's
	f64 := func(rows, cols int) tensor.Tensor { return at(other, rows, cols) }
	for name, f := range map[string]func(){
		"add to ids":         func() { CheckAdd(i32(2, 3), i32(2, 3)) },
		"add ids":            func() { CheckAdd(f32(2, 3), i32(2, 3)) },
		"add another shape":  func() { CheckAdd(f32(2, 3), f32(3, 2)) },
		"product in another": func() { CheckMatMul(f64(2, 3), a16(2, 4), a16(4, 3), MatMul{}, bf16) },
		"sigmoid in another": func() { CheckSigmoid(f64(2, 3), f64(2, 3), bf16) },
		"its gradient":       func() { CheckSigmoidBackward(f64(2, 3), f64(2, 3), f64(2, 3), bf16) },
		"squares of another": func() { CheckSumSquares(f32(1, 1), f64(2, 3), bf16) },
		"classes of nothing": func() {
			(&Classifier{X: a16(6, 0), W: a16(9, 0), Targets: i32(1, 6),
				Loss: f32(1, 6)}).Check(bf16)
		},
		"a gradient of W": func() {
			(&Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), DW: f32(9, 8)}).Check(bf16)
		},
		"no row of parts": func() {
			(&Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Parts: f32(0, 6)}).Check(bf16)
		},
		"weights of another": func() {
			(&AdamW{W: f64(1, 4), M: f32(1, 4), V: f32(1, 4), G: f32(1, 4), Rate: f32(1, 3),
				GradSq: f32(1, 1)}).Check(bf16)
		},
		"a probability of D0": func() { CheckAttentionProbs(f32(1, 3), a16(6, 0), a16(6, 0), Probs{T: 3}, bf16) },
	} {
		if text(f) == "" {
			t.Errorf("%s is allowed", name)
		}
	}
	for name, f := range map[string]func(){
		"add in f64": func() { CheckAdd(f64(2, 3), f64(2, 3)) },
		"one class": func() {
			(&Classifier{X: a16(6, 1), W: a16(1, 1), Targets: i32(1, 6),
				Loss: f32(1, 6)}).Check(bf16)
		},
		"parts of P1": func() {
			(&Classifier{X: a16(6, 8), W: a16(9, 8), Targets: i32(1, 6), Loss: f32(1, 6), Parts: f32(2, 6)}).Check(bf16)
		},
		"one wide": func() { CheckAttentionProbs(f32(1, 1), a16(1, 1), a16(1, 1), Probs{T: 1, D: 1}, bf16) },
	} {
		if s := text(f); s != "" {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// A product is named as it is computed.
func TestProductsByName(t *testing.T) {
	for want, m := range map[string]MatMul{"MatMul c = a·b": {}, "MatMul c += a·b": {Accumulate: true},
		"MatMul c = aᵀ·b": {TransA: true},
		"MatMul c = a·bᵀ": {TransB: true}, "MatMul c += aᵀ·bᵀ": {Accumulate: true, TransA: true, TransB: true}} {
		if got := m.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
