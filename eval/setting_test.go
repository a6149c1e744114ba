package eval

import (
	"slices"
	"strings"
	"testing"
)

// A count that could not be prepared in memory is refused where it is read; the bound itself is not.
func TestSettingsAreBounded(t *testing.T) {
	for _, def := range []any{1, []int{1}} {
		if _, err := readSetting(def, "1048576"); err != nil {
			t.Errorf("%T: %v", def, err)
		}
		for _, text := range []string{"1048577", "1000000000", "-1048577", "99999999999999999999"} {
			if _, err := readSetting(def, text); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
				t.Errorf("%T of %s: %v", def, text, err)
			}
		}
	}
}

// An entry of a list that is there twice would be asked twice and count twice.
func TestSettingsRepeat(t *testing.T) {
	for text, def := range map[string]any{"4,8,4": []int{1}, "0.5,0.25,0.50": []float64{1},
		"typos,drop,typos": []string{""}} {
		if _, err := readSetting(def, text); err == nil || !strings.HasSuffix(err.Error(), "twice") {
			t.Errorf("%T of %s: %v", def, text, err)
		}
	}
	if v, err := readSetting([]string{""}, " a,b "); err != nil || !slices.Equal(v.([]string), []string{" a", "b "}) {
		t.Errorf("texts are kept as they are: %q, %v", v, err)
	}
}
