package server

import (
	"net/http"
	"strings"
)

// openapi describes the table of routes. Request fields are in docs/serving.md; each body here is an object.
func (s *Server) openapi(w http.ResponseWriter, _ *http.Request) {
	paths := map[string]map[string]any{}
	for _, r := range s.routes {
		path := strings.TrimSuffix(strings.Replace(r.path, "...", "", 1), "{$}")
		op := map[string]any{"summary": r.about, "responses": map[string]any{
			"200":     map[string]any{"description": "the answer"},
			"default": map[string]any{"description": "an error", "content": jsonContent("#/components/schemas/Error")},
		}}
		if r.method == http.MethodPost {
			op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"type": "object"}}}}
		}
		if strings.Contains(path, "{id}") {
			op["parameters"] = []any{map[string]any{"name": "id", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}}
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
	s.json(w, http.StatusOK, map[string]any{
		"openapi": "3.1.0", "info": map[string]any{"title": "antiphase", "version": s.cfg.Version}, "paths": paths,
		"security": []any{map[string]any{"key": []string{}}},
		"components": map[string]any{
			"securitySchemes": map[string]any{"key": map[string]any{"type": "http", "scheme": "bearer"}},
			"schemas": map[string]any{"Error": map[string]any{"type": "object", "required": []string{"error"}, "properties": map[string]any{
				"error": map[string]any{"type": "object", "required": []string{"message", "type", "param", "code"}, "properties": map[string]any{
					"message": map[string]any{"type": "string"}, "type": map[string]any{"type": "string"}, "param": text,
					"code": map[string]any{"type": []string{"string", "integer", "null"}}}}}}},
		},
	})
}

func jsonContent(ref string) map[string]any {
	return map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": ref}}}
}
