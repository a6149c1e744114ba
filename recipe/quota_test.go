package recipe

import (
	"strings"
	"testing"

	"antiphase/internal/quota"
)

// TestParseMemory: no file makes the parser take much more than its own length.
func TestParseMemory(t *testing.T) {
	nano, _ := Nano("diff")
	for name, text := range map[string]string{
		"recipe":        string(nano.JSON()),
		"brackets":      strings.Repeat("[", 40000),
		"braces":        strings.Repeat("{a: ", 20000),
		"dashes":        strings.Repeat("- ", 40000),
		"questions":     strings.Repeat("? ", 40000),
		"closed":        "data: {sources: [" + strings.Repeat("[x],", 5000) + "]}",
		"long value":    "name: " + strings.Repeat("x", 900000),
		"long key":      strings.Repeat("x", 900000) + ": 1",
		"many keys":     strings.Repeat("train: {steps: 1}\n", 1),
		"quotes":        "name: " + strings.Repeat(`"`, 9000),
		"indent":        strings.Repeat(" ", 500000) + "x: 1",
		"aliases":       "data: {sources: [&a x" + strings.Repeat(", *a", 5000) + "]}",
		"long list":     "data: {sources: [" + strings.Repeat("x, ", 20000) + "x]}",
		"comment lines": strings.Repeat("# x\n", 20000),
	} {
		quota.Check(t, name, len(text), 600, func() {
			r, _ := Nano("diff")
			_ = r.Parse([]byte(text)) // an error or not: the memory counts
		})
	}
}
