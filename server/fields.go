package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"antiphase/internal/near"
)

// object is a request body being read field by field. A null field counts as absent; the first problem is kept and
// names its field. Fields that were not read by the end are unknown and rejected: otherwise a misspelt setting would be
// ignored.
type object struct {
	m    map[string]json.RawMessage
	seen []string
	err  *apiError
}

// parseObject reads a JSON object and nothing after it. Fields are parts of b. Decoding into a map would take three
// times as long, all of it before the first token.
func parseObject(b []byte) (*object, error) {
	text := bytes.TrimSpace(b) // drops more than JSON's white space, so b is what must be valid
	if !json.Valid(b) || text[0] != '{' {
		return nil, &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Message: objectProblem(b)}
	}
	o := &object{m: map[string]json.RawMessage{}}
	for rest := text[1:]; ; {
		rest = bytes.TrimLeft(rest, ", \t\r\n")
		if rest[0] == '}' {
			return o, nil
		}
		name := quotedText(rest)
		rest = bytes.TrimLeft(rest[len(name):], ": \t\r\n")
		n := valueLen(rest)
		o.m[unquoted(name)] = json.RawMessage(bytes.TrimSpace(rest[:n]))
		rest = rest[n:]
	}
}

// valueLen is the length of the value at the beginning of b, which is inside an object of valid JSON.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			i += len(quotedText(b[i:])) - 1
		case '{', '[':
			depth++
		case ']', '}':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// objectProblem says why b is not a JSON object.
func objectProblem(b []byte) string {
	var m map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(&m); err != nil {
		return "the body is not a JSON object: " + jsonProblem(err)
	}
	if m == nil {
		return "the body is null, must be a JSON object"
	}
	return "the body has more than one JSON value"
}

// jsonProblem is a decoder's error message of bounded length, without names of Go types.
func jsonProblem(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		text = "it is of another kind (" + kind.Value + ")"
		if kind.Field != "" {
			text = kind.Field + " is of another kind (" + kind.Value + ")"
		}
	}
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// refuse keeps the first problem.
func (o *object) refuse(name, format string, args ...any) {
	if o.err == nil {
		o.err = invalid(name, format, args...)
	}
}

// fail keeps the first problem, if it is more than a wrong value.
func (o *object) fail(err *apiError) {
	if o.err == nil {
		o.err = err
	}
}

// raw returns a field, false if it is absent or null.
func (o *object) raw(name string) (json.RawMessage, bool) {
	o.seen = append(o.seen, name)
	v, ok := o.m[name]
	if !ok || string(bytes.TrimSpace(v)) == "null" {
		return nil, false
	}
	return v, true
}

// decode reads a field into v; want describes the expected value.
func (o *object) decode(name string, v any, want string) bool {
	raw, ok := o.raw(name)
	if !ok {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		o.refuse(name, "is %s, must be %s", excerpt(raw), want)
		return false
	}
	return true
}

// excerpt is the beginning of a value, for messages.
func excerpt(raw []byte) string {
	const most = 60
	if len(raw) <= most {
		return strings.ToValidUTF8(string(raw), "�")
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "…"
}

func (o *object) text(name string) string {
	var v string
	o.decode(name, &v, "a string")
	return v
}

func (o *object) flag(name string, def bool) bool {
	o.decode(name, &def, "true or false")
	return def
}

// number is a finite number within a range.
func (o *object) number(name string, def, lo, hi float64) float64 {
	var v float64
	if !o.decode(name, &v, "a number") {
		return def
	}
	if !(v >= lo && v <= hi) {
		o.refuse(name, "is %g, must be between %g and %g", v, lo, hi)
		return def
	}
	return v
}

// whole is an integer within a range.
func (o *object) whole(name string, def, lo, hi int64) int64 {
	raw, ok := o.raw(name)
	if !ok {
		return def
	}
	v, ok := integer(raw)
	if !ok {
		o.refuse(name, "is %s, must be a whole number", excerpt(raw))
		return def
	}
	if v < lo || v > hi {
		o.refuse(name, "is %d, must be between %d and %d", v, lo, hi)
		return def
	}
	return v
}

// integer reads a JSON number without a fraction, in any notation.
func integer(raw []byte) (int64, bool) {
	text := string(bytes.TrimSpace(raw))
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] != '+' {
		return v, true
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// ignore accepts fields that have no effect here.
func (o *object) ignore(names ...string) { o.seen = append(o.seen, names...) }

// only accepts a field that may have one value only, with the reason.
func (o *object) only(name, reason string, values ...string) {
	raw, ok := o.raw(name)
	if ok && !slices.Contains(values, string(bytes.TrimSpace(raw))) {
		o.refuse(name, "is %s, %s", excerpt(raw), reason)
	}
}

// finish returns the first problem, or the first unknown field.
func (o *object) finish() error {
	if o.err != nil {
		return o.err
	}
	var unknown []string
	for name := range o.m {
		if !slices.Contains(o.seen, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	name := unknown[0]
	shown := strings.ToValidUTF8(name, "�")
	if len(shown) > 100 {
		shown = shown[:100]
		for !utf8.ValidString(shown) {
			shown = shown[:len(shown)-1]
		}
	}
	e := &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: shown, Code: "unknown_parameter",
		Message: shown + ": this field is unknown"}
	if known := near.Close(name, o.seen); known != "" {
		e.Message += "; did you mean " + known + "?"
	}
	return e
}
