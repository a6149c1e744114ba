package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda"
	"antiphase/eval"
	"antiphase/internal/escape"
	"antiphase/internal/simd"
	"antiphase/tensor"
	"antiphase/tokenizer/chat"
)

// openTargets opens the models.
func (f *evalFlags) openTargets(a *app, d device.Device) ([]eval.Target, error) {
	named, err := f.named()
	if err != nil {
		return nil, err
	}
	var out []eval.Target
	for _, m := range named {
		t, err := f.target(a, d, m.name, m.path)
		if err != nil {
			return nil, err
		}
		t.Group = m.group
		out = append(out, t)
	}
	return out, alike(out)
}

// namedModel is a model of --model.
type namedModel struct{ name, group, path string }

// named lists the models of --model, with the members of groups. A path's last element is its name unless another has
// the same.
func (f *evalFlags) named() (out []namedModel, err error) {
	seen := map[string]bool{}
	for _, m := range f.models {
		name, path := modelName(m)
		if name == "" || path == "" || escape.Text(name) != name {
			return nil, usage(fmt.Errorf("--model: %q names no model; want NAME=FOLDER or a folder", m))
		}
		group, paths, err := expand(name, path)
		if err != nil {
			return nil, badInput{err}
		}
		for _, path := range paths {
			if group != "" {
				name = group + "/" + filepath.Base(filepath.Clean(path))
			}
			if seen[name] {
				name = path
			}
			seen[name] = true
			out = append(out, namedModel{name, group, path})
		}
	}
	return out, nil
}

// expand resolves a pattern to the paths of a group; a path that exists, or is not a pattern, is a single model.
func expand(name, path string) (group string, paths []string, err error) {
	if _, err := os.Stat(path); err == nil || strings.Contains(path, "://") || !strings.ContainsAny(path, "*?[") {
		return "", []string{path}, nil
	}
	paths, err = filepath.Glob(path)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("--model: %s: no folder matches", path)
	}
	return name, paths, err
}

func (f *evalFlags) target(a *app, d device.Device, name, path string) (eval.Target, error) {
	if e, ok, err := endpoint(path); err != nil || ok {
		if ok {
			e.Parallel = f.parallel
		}
		return eval.Target{Model: eval.Model{Name: name, Hash: path, Context: f.context, Device: "endpoint"}, LM: e},
			err
	}
	l, err := a.load(d, path)
	if err != nil {
		return eval.Target{}, err
	}
	if l.Tokenizer == nil {
		return eval.Target{}, badInput{fmt.Errorf("--model: %s has no tokenizer.json, so it cannot be evaluated", path)}
	}
	hash, err := modelHash(l)
	t := newSubject(a, d, name, hash, l, f.batch)
	if err == nil && f.chat {
		err = converse(&t, l)
	}
	return t, err
}

// converse makes a model answer messages with its chat template. This changes its numbers, and so its identity.
func converse(t *eval.Target, l *loaded) error {
	template, err := chatTemplate(l)
	if err == nil && template == nil {
		err = fmt.Errorf("%s has no chat template", l.Dir)
	}
	if err != nil {
		return badInput{fmt.Errorf("--apply-chat-template: %w", err)}
	}
	render := func(prompt string) (string, error) {
		return template.Render(chat.Conversation{Messages: []chat.Message{{Role: "user", Content: prompt}},
			Generate: true})
	}
	if _, err := render("Hello"); err != nil {
		return badInput{fmt.Errorf("--apply-chat-template: %s: %w", l.Dir, err)}
	}
	t.LM.(*eval.Subject).Template = render
	t.Hash = "chat " + t.Hash
	return nil
}

// newSubject is a loaded model in the evaluation's form.
func newSubject(a *app, d device.Device, name, hash string, l *loaded, batch int) eval.Target {
	s := &eval.Subject{Name: name, Model: l.Model, Tokenizer: l.Tokenizer, Batch: batch, EOS: l.EOS}
	if l.Manners.First >= 0 {
		s.First = &l.Manners.First
	}
	kind, precision := computes(d)
	return eval.Target{LM: s, Model: eval.Model{Name: name, Hash: hash, Context: l.Model.Config.Context,
		Precision: precision, Device: kind, Threads: a.threads, Tokens: l.Tokens}}
}

// computes is what can change a number: the kind of device, with its instruction set or generation, and its precision.
func computes(d device.Device) (kind, precision string) {
	switch d := d.(type) {
	case *cpu.Device:
		return "cpu " + simd.Name(), d.Precision().String()
	case *cuda.Device:
		precision := cpu.BF16.String()
		if d.Types().Cache == tensor.I8 {
			precision += ", int8 cache"
		}
		return "cuda " + d.Info().Arch(), precision
	}
	return d.Name(), ""
}

// modelName splits NAME=PATH; the default name is the path's last element.
func modelName(m string) (name, path string) {
	if name, path, ok := strings.Cut(m, "="); ok && !strings.ContainsAny(name, "/:") {
		return name, path
	}
	if url, model, ok := strings.Cut(m, endpointMark); ok && strings.Contains(url, "://") {
		return model, m
	}
	return filepath.Base(filepath.Clean(m)), m
}

// endpointMark separates the address and the model's name.
const endpointMark = "#"

// endpoint parses URL#MODEL, and URL#MODEL#chat for servers that only support chat. The key is read from
// OPENAI_API_KEY.
func endpoint(s string) (*eval.Endpoint, bool, error) {
	if !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
		return nil, false, nil
	}
	url, model, _ := strings.Cut(s, endpointMark)
	model, kind, _ := strings.Cut(model, endpointMark)
	if model == "" || kind != "" && kind != "chat" {
		return nil, false, usage(fmt.Errorf(
			"%s is not an endpoint; want URL#MODEL or URL#MODEL#chat, such as http://localhost:8000/v1#small", s))
	}
	if err := checkURL(url); err != nil {
		return nil, false, usage(fmt.Errorf("%s is not an endpoint: %w", s, err))
	}
	return &eval.Endpoint{URL: url, Model: model, Key: os.Getenv("OPENAI_API_KEY"), Chat: kind == "chat"}, true, nil
}
