package eval

import "testing"

// Values of scikit-learn 1.2: f1_score, f1_score(average="macro"), matthews_corrcoef.
func TestDecisions(t *testing.T) {
	gold, said := []int{0, 1, 2, 2, 1, 0, 0, 2, 1, 1}, []int{0, 2, 2, 1, 1, 0, 1, 2, 1, 0}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"F1", F1(gold, said, 1), 0.5},
		{"macro F1", MacroF1(gold, said, 3), 0.6111111111111112},
		{"Matthews", Matthews(gold, said), 0.3939393939393939},
		{"constant", Matthews(gold, make([]int, len(gold))), 0},
		{"absent", F1(gold, said, 7), 0},
	} {
		if !near(c.got, c.want, 1e-12) {
			t.Errorf("%s is %v, scikit-learn has %v", c.name, c.got, c.want)
		}
	}
}
