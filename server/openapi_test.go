package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The parts of OpenAPI that openapi.json uses. Any other key in it is an error.
type (
	apiSchema struct {
		Ref         string               `json:"$ref"`
		Type        any                  `json:"type"`
		Properties  map[string]apiSchema `json:"properties"`
		Additional  *bool                `json:"additionalProperties"`
		Items       *apiSchema           `json:"items"`
		Required    []string             `json:"required"`
		Description string               `json:"description"`
		Minimum     *float64             `json:"minimum"`
		Unique      bool                 `json:"uniqueItems"`
		Default     any                  `json:"default"`
		Enum        []string             `json:"enum"`
	}
	apiContent map[string]struct {
		Schema *apiSchema `json:"schema"`
	}
	apiOperation struct {
		Summary    string `json:"summary"`
		Security   []any  `json:"security"`
		Parameters []struct {
			Name     string     `json:"name"`
			In       string     `json:"in"`
			Required bool       `json:"required"`
			Schema   *apiSchema `json:"schema"`
		} `json:"parameters"`
		Body *struct {
			Required bool       `json:"required"`
			Content  apiContent `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Description string     `json:"description"`
			Content     apiContent `json:"content"`
		} `json:"responses"`
	}
	apiDoc struct {
		OpenAPI    string                             `json:"openapi"`
		Info       map[string]string                  `json:"info"`
		Security   []map[string][]string              `json:"security"`
		Paths      map[string]map[string]apiOperation `json:"paths"`
		Components struct {
			Security map[string]map[string]string `json:"securitySchemes"`
			Schemas  map[string]apiSchema         `json:"schemas"`
		} `json:"components"`
	}
)

// check reports what is wrong with a schema.
func (s *apiSchema) check(t *testing.T, doc *apiDoc, where string) {
	t.Helper()
	if s == nil {
		t.Errorf("%s: no schema", where)
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); s.Ref != "" {
		if _, there := doc.Components.Schemas[name]; !ok || !there || s.Type != nil {
			t.Errorf("%s refers to %q", where, s.Ref)
		}
		return
	}
	kinds := []string{fmt.Sprint(s.Type)}
	if list, ok := s.Type.([]any); ok {
		kinds = nil
		for _, k := range list {
			kinds = append(kinds, fmt.Sprint(k))
		}
	}
	for _, k := range kinds {
		if known := []string{"object", "array", "string", "integer", "number", "boolean",
			"null"}; !slices.Contains(known, k) && s.Enum == nil {
			t.Errorf("%s is of type %q", where, k)
		}
	}
	has := func(kind string) bool { return slices.Contains(kinds, kind) }
	if s.Items != nil && !has("array") || s.Unique && !has("array") || s.Properties != nil && !has("object") ||
		s.Minimum != nil && !has("integer") {
		t.Errorf("%s: %+v is of type %v", where, s, kinds)
	}
	if s.Items != nil {
		s.Items.check(t, doc, where+"[]")
	}
	for name, p := range s.Properties {
		p.check(t, doc, where+"."+name)
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("%s requires %s and does not describe it", where, name)
		}
	}
}

// openapi.json is what programs can read: known keys and types, references that exist, bodies and errors as they are.
func TestOpenAPIIsWellFormed(t *testing.T) {
	r := newRig(t, setup{})
	_, _, b := r.do("GET", "/openapi.json", nil)
	var doc apiDoc
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if s := doc.Components.Security["key"]; s["type"] != "http" || len(doc.Security) != 1 ||
		doc.Security[0]["key"] == nil {
		t.Errorf("keys: %v, %v", s, doc.Security)
	}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			where := method + " " + path
			if op.Responses["200"].Description == "" || op.Responses["default"].Description == "" ||
				len(op.Responses) != 2 {
				t.Errorf("%s: responses %v", where, op.Responses)
			}
			op.Responses["default"].Content["application/json"].Schema.check(t, &doc, where)
			for _, p := range op.Parameters {
				p.Schema.check(t, &doc, where)
			}
			if op.Body == nil {
				continue
			}
			s := op.Body.Content["application/json"].Schema
			if s.check(t, &doc, where); !op.Body.Required || s.Type != "object" ||
				(s.Additional != nil) != (s.Properties != nil) {
				t.Errorf("%s: body %+v", where, op.Body)
			}
			for name, p := range s.Properties {
				if p.Description == "" {
					t.Errorf("%s does not say what %s is", where, name)
				}
			}
		}
	}
	errs := doc.Components.Schemas["Error"]
	errs.check(t, &doc, "Error")
	var real struct{ Error map[string]any }
	_, _, b = r.do("POST", "/v1/completions", "no JSON")
	if err := json.Unmarshal(b, &real); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(real.Error))
	for _, got := range [][]string{slices.Sorted(maps.Keys(errs.Properties["error"].Properties)),
		slices.Sorted(slices.Values(errs.Properties["error"].Required))} {
		if !slices.Equal(got, want) || len(errs.Required) != 1 || errs.Type != "object" {
			t.Errorf("errors have %v, described are %v: %+v", want, got, errs)
		}
	}
}

// Every field that /v1/attention is described to have it takes, with the default that is described.
func TestAttentionIsAsDescribed(t *testing.T) {
	r := newRig(t, setup{})
	base := fieldsOf{"prompt": strings.Repeat("abc ", 20)}
	_, _, want := r.do("POST", "/v1/attention", base)
	examples := map[string]any{"boolean": true, "array": []int{1}, "integer": 1, "string": "tiny"}
	for name, f := range attentionFields {
		s := f.(map[string]any)
		body := maps.Clone(base)
		def, ok := s["default"]
		switch kind, _ := s["type"].(string); {
		case ok:
			body[name] = def
		case name == "maps":
			body[name] = []string{"a1"}
		case name == "interventions":
			body[name] = []fieldsOf{{"layers": []int{0}, "heads": []int{1}, "lambda": 0.5, "second": "shuffled",
				"seed": 3, "knockout": false}}
		case name != "prompt" && name != "messages":
			body[name] = examples[kind]
		}
		status, _, b := r.do("POST", "/v1/attention", body)
		if status != 200 || ok && !bytes.Equal(b, want) {
			t.Errorf("%s = %v: %d %.200s", name, body[name], status, b)
		}
	}
}
