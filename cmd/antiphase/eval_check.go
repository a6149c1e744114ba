package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"antiphase/eval"
)

// idle finds flags without effect, and an invalid data folder, before anything is opened.
func (f *evalFlags) idle() error {
	isEndpoint := func(m string) bool {
		_, path := modelName(m)
		return strings.Contains(path, "://")
	}
	endpoints := slices.ContainsFunc(f.models, isEndpoint)
	switch {
	case f.opt.LogSamples && f.opt.Output == "":
		return usage(errors.New("--log-samples: needs --output"))
	case f.opt.Replicate != "" && f.opt.Output == "":
		return usage(errors.New("--replicate: needs --output, the store whose results it repeats"))
	case f.changed("scale") && f.preset == "":
		return usage(errors.New("--scale: belongs to --preset, and none is named"))
	case f.changed("endpoint-context") && !endpoints:
		return usage(errors.New("--endpoint-context: no --model is an endpoint; a local model's context is its own"))
	case f.changed("endpoint-concurrency") && !endpoints && f.judge == "":
		return usage(errors.New("--endpoint-concurrency: neither a --model nor the --judge is an endpoint"))
	case f.chat && endpoints:
		return usage(errors.New(
			"--apply-chat-template: a --model is an endpoint, which has its template itself; name it URL#MODEL#chat"))
	case f.opt.Data == "":
		return nil
	}
	info, err := os.Stat(f.opt.Data)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is a file; want the folder of data sets", f.opt.Data)
	}
	if err != nil {
		return badInput{fmt.Errorf("--data: %w", err)}
	}
	return nil
}

// idleFor finds flags that no task uses. A task that wraps another may use what the other does.
func (f *evalFlags) idleFor(tasks []eval.Task) error {
	any := func(heeds func(t eval.Task) bool) bool {
		return slices.ContainsFunc(tasks, func(t eval.Task) bool {
			return heeds(t) || slices.ContainsFunc(t.Settings, func(s eval.Setting) bool { return s.Key == "task" })
		})
	}
	if f.opt.Shots >= 0 && !any(func(t eval.Task) bool { return t.Shots >= 0 }) {
		return usage(errors.New("--num-fewshot: none of the tasks has examples before its questions"))
	}
	judged := func(t eval.Task) bool {
		return slices.ContainsFunc(t.Measures, func(m eval.Measure) bool { return m.Name == "judge" })
	}
	if f.judge != "" && !any(judged) {
		return usage(errors.New("--judge: none of the tasks needs a judge; those of the group hallucination do"))
	}
	return nil
}

// alike rejects a group whose models differ in more than their training, and one model under two names: the last name
// would count, and a group would silently lose it.
func alike(list []eval.Target) error {
	first, named := map[string]*eval.Target{}, map[string]string{}
	for i := range list {
		t := &list[i]
		s, ours := t.LM.(*eval.Subject)
		if !ours {
			continue
		}
		if other, ok := named[t.Hash]; ok {
			return usage(fmt.Errorf("--model: %s and %s are the same model; name it once", other, t.Name))
		}
		named[t.Hash] = t.Name
		o := first[t.Group]
		if o == nil {
			first[t.Group] = t
			continue
		}
		if c := o.LM.(*eval.Subject).Model.Config; t.Group != "" && c != s.Model.Config {
			return usage(fmt.Errorf("--model: the group %s has models of different shape: %s is %s of %d parameters, "+
				"%s is %s of %d; a group is of models that differ in their training seed",
				t.Group, o.Name, c.Arch, o.LM.(*eval.Subject).Model.Params.Count(), t.Name, s.Model.Config.Arch,
				s.Model.Params.Count()))
		}
	}
	return nil
}
