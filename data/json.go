package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// JSONError says of a value of the wrong kind what it is and what it should be, in JSON's own words; the decoder's error names Go's types.
func JSONError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	found, ok := jsonKinds[wrong.Value]
	if !ok {
		found = "the " + wrong.Value // a number, which is given
	}
	text := fmt.Sprintf("want %s, found %s", jsonKind(wrong.Type), found)
	if wrong.Field != "" {
		text = fmt.Sprintf("field %q: %s", wrong.Field, text)
	}
	return errors.New(text)
}

var jsonKinds = map[string]string{"string": "a string", "array": "an array", "object": "an object", "bool": "true or false", "number": "a number"}

// jsonKind is what JSON calls a value of a type.
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
