package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// said is an error's text for people. The JSON decoder names the program's own types; a user knows the keys of the
// file.
func said(err error) string {
	text := err.Error()
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return strings.Replace(text, wrong.Error(), wrongKind(wrong), 1)
	}
	return text
}

// wrongKind says which value is of which kind, and which it should be.
func wrongKind(e *json.UnmarshalTypeError) string {
	is := e.Value
	if kind, number, ok := strings.Cut(e.Value, " "); ok && kind == "number" {
		is = number
	} else if name, ok := map[string]string{"number": "a number", "string": "a string", "bool": "true or false",
		"array": "a list", "object": "an object"}[e.Value]; ok {
		is = name
	}
	s := fmt.Sprintf("is %s, want %s", is, kindName(e.Type))
	if e.Field != "" {
		s = fmt.Sprintf("%q %s", e.Field, s)
	}
	return s
}

// kindName is what a Go type is in JSON.
func kindName(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return kindName(t.Elem())
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String:
		return "a string"
	case k == reflect.Slice, k == reflect.Array:
		return "a list"
	case k == reflect.Float32, k == reflect.Float64:
		return "a number"
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "a whole number"
	}
	return "an object"
}
