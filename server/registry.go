package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// registry holds the models by name.
type registry struct {
	mu     sync.Mutex
	models []*Model
}

// set replaces the models; the first is the default.
func (g *registry) set(models []*Model) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.models = models
}

// list are the models, the default one first.
func (g *registry) list() []*Model {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.models
}

// find is the model of a request; an empty name means the first.
func (g *registry) find(name string) (*Model, error) {
	var names []string
	for _, m := range g.list() {
		if m.ID == name || name == "" {
			return m, nil
		}
		names = append(names, m.ID)
	}
	return nil, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Param: "model", Code: "model_not_found",
		Message: fmt.Sprintf("the model %.100q does not exist; there are: %s", name, strings.Join(names, ", "))}
}
