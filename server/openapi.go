package server

import (
	"net/http"
	"strings"
)

// openapi describes the table of routes. Request fields are in docs/serving.md; each body here is an object.
func (t *router) openapi(w http.ResponseWriter, _ *http.Request) {
	paths := map[string]map[string]any{}
	for _, r := range t.routes {
		path := strings.TrimSuffix(strings.Replace(r.path, "...", "", 1), "{$}")
		op := map[string]any{"summary": r.about, "responses": map[string]any{
			"200":     map[string]any{"description": "the answer"},
			"default": map[string]any{"description": "an error", "content": jsonContent("#/components/schemas/Error")},
		}}
		if r.method == http.MethodPost {
			schema := map[string]any{"type": "object"}
			if r.fields != nil {
				schema["properties"], schema["additionalProperties"] = r.fields, false
			}
			op["requestBody"] = map[string]any{"required": true,
				"content": map[string]any{"application/json": map[string]any{"schema": schema}}}
		}
		if strings.Contains(path, "{id}") {
			op["parameters"] = []any{map[string]any{"name": "id", "in": "path", "required": true,
				"schema": map[string]any{"type": "string"}}}
		}
		if r.public {
			op["security"] = []any{}
		}
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.method)] = op
	}
	text := map[string]any{"type": []string{"string", "null"}}
	t.json(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "antiphase", "version": t.cfg.Version}, "paths": paths,
		"security": []any{map[string]any{"key": []string{}}},
		"components": map[string]any{
			"securitySchemes": map[string]any{"key": map[string]any{"type": "http", "scheme": "bearer"}},
			"schemas": map[string]any{"Error": map[string]any{"type": "object", "required": []string{"error"},
				"properties": map[string]any{
					"error": map[string]any{"type": "object", "required": []string{"message", "type", "param", "code"},
						"properties": map[string]any{
							"message": map[string]any{"type": "string"}, "type": map[string]any{"type": "string"},
							"param": text,
							"code":  map[string]any{"type": []string{"string", "integer", "null"}}}}}}},
		},
	})
}

// attentionFields describe the body of /v1/attention, which is our own and documented nowhere else.
var attentionFields = func() map[string]any {
	field := func(about string, more map[string]any) map[string]any {
		more["description"] = about
		return more
	}
	whole := func() map[string]any { return map[string]any{"type": "integer", "minimum": 0} }
	list := func(about string) map[string]any {
		return field(about, map[string]any{"type": "array", "items": whole(), "uniqueItems": true})
	}
	return map[string]any{
		"model": field("as /v1/models lists it; the first by default", map[string]any{"type": "string"}),
		"prompt": field("a text or a list of token ids; or give messages",
			map[string]any{"type": []string{"string", "array"}}),
		"messages": field("a conversation, rendered by the model's template",
			map[string]any{"type": "array"}),
		"add_special_tokens": field("begin a text as every text begins",
			map[string]any{"type": "boolean", "default": true}),
		"layers": list("counted from 0; all by default"),
		"heads":  list("counted from 0; all by default"),
		"maps": field("maps to send; all that the model has by default, and a1 is the only one of a Transformer",
			map[string]any{"type": "array", "items": map[string]any{"enum": []string{"a1", "a2", "diff"}}}),
		"size": field(
			"most rows of a map: a longer prompt is sent in tiles, summed over keys and averaged over queries",
			map[string]any{"type": "integer", "minimum": 1, "default": 256}),
		"rows": list("tokens whose own rows are sent too, whatever the size is"),
		"next": list("tokens after which the likeliest next ones are listed; the last by default"),
		"topk": field("how many of those",
			map[string]any{"type": "integer", "minimum": 1, "default": 10}),
		"interventions": field("changes to heads for this request alone",
			map[string]any{"type": "array",
				"items": map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
					"layers": list("all by default"), "heads": list("all by default"),
					"lambda": field("factor on λ; 0 drops the second map", map[string]any{"type": "number"}),
					"second": field("what becomes of the second map",
						map[string]any{"enum": []string{"", "shuffled", "averaged"}}),
					"seed":     field("of shuffled", whole()),
					"knockout": field("the head gives nothing", map[string]any{"type": "boolean"})}}}),
	}
}()

func jsonContent(ref string) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": ref}}}
}
