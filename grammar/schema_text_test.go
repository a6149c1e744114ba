package grammar

import (
	"errors"
	"strings"
	"testing"
)

// Reading of a schema's own text: a repeated key keeps its first place and its last value, text after the end is an
// error whatever it is, and nesting is bounded.
func TestSchemaText(t *testing.T) {
	g := compiled(t,
		`{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"},"a":{"type":"integer"}},"required":["a","b"]}`)
	if !reads(g, `{"a":1,"b":null}`) || reads(g, `{"b":null,"a":1}`) || reads(g, `{"a":null,"b":null}`) {
		t.Error("a repeated property")
	}
	for text, problem := range map[string]string{
		`{} ]`: "there is more after the schema", `{} }`: "there is more after the schema",
		`true 1`: "there is more after the schema", `{} x`: "there is more after the schema",
		`{"type" "string"}`: "is not JSON", `{"a":}`: "is not JSON", `[1`: "is not JSON", `{"a"`: "is not JSON",
		"": "is not JSON",
		strings.Repeat("[", 202) + strings.Repeat("]", 202): "is nested too deep", strings.Repeat("[", 200) +
			strings.Repeat("]", 200): "must be an object or a boolean",
	} {
		_, err := Compile([]byte(text), Limits{})
		var e *SchemaError
		if !errors.As(err, &e) || e.Problem != problem || e.Path != "" {
			t.Errorf("%.40s: %v, want %s", text, err, problem)
		}
	}
	if _, err := Compile([]byte(" {} \n\t"), Limits{}); err != nil {
		t.Error(err)
	}
}
