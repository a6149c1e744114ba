package surrogate

import (
	"encoding/json"
	"strings"
	"testing"
)

// Half of a surrogate pair is found wherever it is, and nothing else is: encoding/json puts U+FFFD exactly there.
func TestLone(t *testing.T) {
	for _, text := range []string{``, `a`, `\\`, `\"`, `\n`, `\u0041`, `\\u0041`, `\\ud800`, `\\\\ud800`,
		`\ud83d\ude00`, `\uD83D\uDE00`, `x\ud83d\ude00y\udbff\udfff`,
		`😀`, `\ud800`, `\uDFFF`, `\ude00\ud83d`, `\ud83d\ud83d\ude00`, `\ud83d\ude00\ude00`, `\ud83d\n\ude00`,
		`\ud83dxude00`, `\ud83d\nde00`, `\ud83d\\ude00`, `\ud83dx`, `\ud83d\u0041`, `\\\ud800`, `\ud7ff\ue000`} {
		b := []byte(`{"a":["` + text + `"]}`)
		if !json.Valid(b) {
			t.Fatalf("%s is not JSON", b)
		}
		var v map[string][]string
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		want := strings.ContainsRune(v["a"][0], '\uFFFD')
		if escape, got := Lone(b); got != want || got && !strings.Contains(text, escape) {
			t.Errorf("%s: %q, %v, want %v", text, escape, got, want)
		}
	}
}

// Text that is not JSON does no harm.
func TestLoneInNonsense(t *testing.T) {
	for _, text := range []string{`\`, `\u`, `\ud8`, `\uzzzz`, `"\ud83d\`, `"\ud83d\u12`, "\\\xff"} {
		Lone([]byte(text))
	}
}

// What is found is the first escape that stands alone, to the letter, at any place and next to others.
func TestLoneIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`"\ud83d"`: `\ud83d`, `\ud83d`: `\ud83d`, `a\uDC00b`: `\uDC00`, `\ud83d\ude00\ud83e`: `\ud83e`,
		`\u0041\ude00\ud83d`: `\ude00`, `\\\ud800`: `\ud800`,
		`\ud800\ud801`: `\ud800`, `\u0041\u0042`: "", `\ud83d\ude00`: "", `\\ud83d`: "", `\ud83`: "",
		`\n\t\udbff`: `\udbff`, `\ud83d\ude00\ud83d\ude01\udfff`: `\udfff`, ``: "", `\x00d83d`: "",
		`x\ud83d\u`: `\ud83d`,
	} {
		if got, found := Lone([]byte(text)); got != want || found != (want != "") {
			t.Errorf("%s: %q, %v, want %q", text, got, found, want)
		}
	}
}
