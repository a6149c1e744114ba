package main

import (
	"strings"
	"testing"
)

// Commands that are suggested work as they are printed, also in a folder whose name has a space.
func TestHintsAreQuoted(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"train", "--size", "nano", "--steps", "1", "--dir", "my run"}, ` generate --model 'my run' "Once"`},
		{[]string{"eval", "-m", "my run", "-t", "lm", "--set", "lm.pieces=2", "-o", "my store"}, " report 'my store'"},
		{[]string{"ablation", "--size", "nano", "--steps", "1", "--dir", "my rows"}, " report 'my rows'"},
	} {
		code, _, errs := ran(t, append(x.args, "--device", "cpu")...)
		if last := strings.TrimSpace(errs); code != 0 || !strings.HasSuffix(last, x.want) {
			t.Errorf("%q: exit %d, %s", x.args, code, errs[max(0, len(errs)-300):])
		}
	}
}
