package server

import (
	"net/http"
)

// card describes a model to clients, in OpenAI's fields and those that other clients use.
func (s *Server) card(m *Model) map[string]any {
	return map[string]any{
		"id": m.ID, "object": "model", "created": m.Created.Unix(), "owned_by": "antiphase", "max_model_len": m.Context,
		"meta": map[string]any{"n_vocab": m.Tokenizer.Vocab(), "n_ctx_train": m.Context, "n_params": m.Params, "arch": m.Arch, "chat": m.Template != nil,
			"n_layer": m.config.Layers, "n_head": m.config.Heads, "n_maps": m.softmaxes(), "attention_cells": s.cfg.Limits.Cells, "attention_entries": s.cfg.Limits.Entries},
	}
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	if err := s.unavailable(); err != nil {
		s.fail(w, r, err)
		return
	}
	list := []any{}
	for _, m := range s.list() {
		list = append(list, s.card(m))
	}
	s.json(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	if err := s.unavailable(); err != nil {
		s.fail(w, r, err)
		return
	}
	id := r.PathValue("id")
	m, err := s.find(id)
	if id == "" || err != nil {
		s.fail(w, r, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Param: "model", Code: "model_not_found", Message: "there is no such model; GET /v1/models lists them"})
		return
	}
	s.json(w, http.StatusOK, s.card(m))
}
