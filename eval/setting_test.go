package eval

import (
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
