package server

import "net/http"

// modelRoutes describe the models.
type modelRoutes struct{ *core }

// card describes a model to clients, in OpenAI's fields and those that other clients use.
func (t *modelRoutes) card(m *Model) map[string]any {
	return map[string]any{
		"id": m.ID, "object": "model", "created": m.Created.Unix(), "owned_by": "antiphase", "max_model_len": m.Context,
		"meta": map[string]any{"n_vocab": m.Tokenizer.Vocab(), "n_ctx_train": m.Context, "n_params": m.Params,
			"arch": m.Arch, "chat": m.Template != nil,
			"n_layer": m.config.Layers, "n_head": m.config.Heads, "n_maps": m.softmaxes(),
			"attention_cells": t.cfg.Limits.Cells, "attention_entries": t.cfg.Limits.Entries},
	}
}

func (t *modelRoutes) listModels(w http.ResponseWriter, r *http.Request) {
	if err := t.calls.unavailable(); err != nil {
		t.fail(w, r, err)
		return
	}
	list := []any{}
	for _, m := range t.models.list() {
		list = append(list, t.card(m))
	}
	t.json(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (t *modelRoutes) getModel(w http.ResponseWriter, r *http.Request) {
	if err := t.calls.unavailable(); err != nil {
		t.fail(w, r, err)
		return
	}
	id := r.PathValue("id")
	m, err := t.models.find(id)
	if id == "" || err != nil {
		t.fail(w, r, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Param: "model", Code: "model_not_found",
			Message: "there is no such model; GET /v1/models lists them"})
		return
	}
	t.json(w, http.StatusOK, t.card(m))
}
