package server

import (
	"bytes"
	"encoding/json"
	"net/http"

	"antiphase/infer"
	"antiphase/lab"
	"antiphase/layer"
	"antiphase/model"
)

// labRoutes look inside a model.
type labRoutes struct{ *core }

// attention inspects a prompt: maps of chosen heads, λ, losses, and next tokens. The work and the size of the response
// are known before anything is computed, and bounded.
func (t *labRoutes) attention(w http.ResponseWriter, r *http.Request) {
	reply, err := t.look(w, r)
	if err != nil {
		t.abandon(w, r, nil, gone(r, err))
		return
	}
	t.json(w, http.StatusOK, reply)
}

// attentionReply is lab's with the fields common to all responses.
type attentionReply struct {
	Object string `json:"object"`
	Model  string `json:"model"`
	*lab.Reply
}

func (t *labRoutes) look(w http.ResponseWriter, r *http.Request) (any, error) {
	o, err := t.openCall(w, r)
	if err != nil {
		return nil, err
	}
	m := o.model
	q, err := o.query()
	if err != nil {
		return nil, err
	}
	if err := t.calls.begin(); err != nil {
		return nil, err
	}
	defer t.calls.end()
	ctx, cancel := t.calls.deadline(r, t.cfg.Limits.Request)
	defer cancel()
	leave, err := m.gate.enter(ctx, caller(r), 1, len(q.IDs))
	if err != nil {
		return nil, err
	}
	defer leave()
	var reply *lab.Reply
	err = m.Engine.Beside(ctx, func(net *model.Model, rest func()) (err error) {
		reply, err = lab.Look(ctx, net, q, m.Tokenizer.Spell, rest)
		return err
	})
	return attentionReply{"attention", m.ID, reply}, err
}

// query reads the fields of a request and prices it.
func (o *form) query() (*lab.Query, error) {
	m := o.model
	q := &lab.Query{
		Size: int(o.whole("size", lab.DefaultSize, 1, 1<<20)),
		Top:  int(o.whole("topk", 10, 1, int64(o.limits.Tops))),
	}
	o.list("layers", &q.Layers)
	o.list("heads", &q.Heads)
	o.list("rows", &q.Rows)
	named := o.decode("maps", &q.Maps, `a list of "a1", "a2" and "diff"`)
	chosen := o.list("next", &q.Next)
	o.interventions(&q.Interventions)
	ids, err := o.onePrompt()
	if err != nil {
		return nil, err
	}
	if len(ids) > m.Context {
		return nil, &infer.ContextError{Prompt: len(ids), Limit: m.Context, Of: "context"}
	}
	q.IDs = ids
	if !named {
		q.Maps = m.maps()
	}
	if !chosen { // of no tokens Complete says so
		q.Next = []int{len(ids) - 1}
	}
	if err := q.Complete(m.config); err != nil {
		return nil, err
	}
	return q, o.limits.price(q)
}

// price rejects queries that are too large, with both numbers.
func (l *Limits) price(q *lab.Query) error {
	c := q.Cost()
	for _, f := range []struct {
		what      string
		has, most int
	}{{"numbers to send", c.Cells, l.Cells}, {"entries of maps to compute", c.Entries, l.Entries}} {
		if f.has > f.most {
			return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Param: "layers", Code: "too_many_cells",
				Message: "this asks for too many " + f.what + "; name fewer layers, heads or rows, or a smaller size",
				Extra:   map[string]any{"cells": f.has, "limit": f.most}}
		}
	}
	return nil
}

// onePrompt reads a text, ids or a conversation, and finishes reading fields.
func (o *form) onePrompt() ([]int32, error) {
	if _, chat := o.raw("messages"); chat {
		talk := o.conversation()
		if err := o.finish(); err != nil {
			return nil, err
		}
		return o.model.render(talk)
	}
	list := o.prompts("prompt", o.flag("add_special_tokens", true), false)
	if len(list) > 1 {
		o.refuse("prompt", "is a list of %d, must be one text or one list of token ids", len(list))
	}
	if err := o.finish(); err != nil {
		return nil, err
	}
	return list[0], nil
}

// interventions reads the changes to heads. Unknown fields are rejected here too.
func (o *object) interventions(dst *[]layer.Intervention) {
	raw, ok := o.raw("interventions")
	if !ok {
		return
	}
	const want = "must be a list of objects with layers, heads, lambda, second, seed and knockout"
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		o.refuse("interventions", want+": %s", jsonProblem(err))
	} else if nullInList(raw) {
		o.refuse("interventions", want+", none of them null")
	}
}

// list reads a list of small numbers and reports whether it is present.
func (o *object) list(name string, dst *[]int) bool {
	ids, present := o.ids(name, "a list of whole numbers")
	if present {
		*dst = make([]int, len(ids)) // an empty list is not the same as none
	}
	for i, id := range ids {
		(*dst)[i] = int(id)
	}
	return present
}

// softmaxes is the number of maps of a head.
func (m *Model) softmaxes() int {
	arch, err := layer.LookupArch(m.config.Arch)
	if err != nil { // the model was made with it
		return 1
	}
	return arch.Maps
}

// maps are the names of the maps that a head of the model has.
func (m *Model) maps() []string {
	if m.softmaxes() == 2 {
		return []string{lab.A1, lab.A2, lab.Diff}
	}
	return []string{lab.A1}
}
