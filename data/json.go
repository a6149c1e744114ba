package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"antiphase/internal/surrogate"
)

// ReadJSON reads a line of a data set into v. Text that the decoder would silently change is an error, see kept.
func ReadJSON(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil && utf8.Valid(line) {
		return JSONError(err)
	}
	return kept(line)
}

// kept rejects JSON with text that the decoder would silently change: bytes that are not UTF-8, or half of a surrogate
// pair.
func kept(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("is not UTF-8")
	}
	if escape, half := surrogate.Lone(b); half {
		return fmt.Errorf("%s stands without the other half of its surrogate pair, which is not a character", escape)
	}
	return nil
}

// JSONError describes a value of the wrong kind in JSON's terms: its kind and the expected one. The decoder's error
// names Go types.
func JSONError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	found, ok := jsonKinds[wrong.Value]
	if !ok {
		found = "the " + wrong.Value // a number, whose value is given
	}
	text := fmt.Sprintf("want %s, found %s", jsonKind(wrong.Type), found)
	if wrong.Field != "" {
		text = fmt.Sprintf("field %q: %s", wrong.Field, text)
	}
	return errors.New(text)
}

var jsonKinds = map[string]string{"string": "a string", "array": "an array", "object": "an object",
	"bool": "true or false", "number": "a number"}

// jsonKind is JSON's name for values of a type.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonKind(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}
