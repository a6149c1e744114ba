package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"antiphase/eval"
)

// Preset is a published table or figure as a list of tasks with the settings of its protocol.
type Preset struct {
	Name        string // as --preset takes it
	Doc         string // what it is, and what else it needs
	Parts       []PresetPart
	Checkpoints bool   // evaluates every checkpoint of a run
	Command     string // the command of another verb that makes it; there are no parts then
}

// PresetPart is one task or group of a preset.
type PresetPart struct {
	Tasks string                              // names and groups, separated by commas
	Shots int                                 // 0: the tasks' default; else one more than the number of examples
	Set   map[string]string                   // settings as published
	Fit   func(context int) map[string]string // changes for models with a smaller context; nil: none
}

// FindPreset finds a preset by name.
func FindPreset(name string) (*Preset, error) {
	list := Presets()
	i := slices.IndexFunc(list, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		var names []string
		for _, p := range list {
			names = append(names, p.Name)
		}
		return nil, fmt.Errorf("preset %q is unknown; there are %s", name, strings.Join(names, ", "))
	}
	if p := &list[i]; p.Command == "" {
		return p, nil
	}
	return nil, fmt.Errorf("preset %s, %s, is made by another command: %s", name, list[i].Doc, list[i].Command)
}

// Tasks returns the preset's tasks: as published or, with fit, at the scale of models with the given context.
func (p *Preset) Tasks(fit bool, context int) ([]eval.Task, error) {
	var out []eval.Task
	for _, part := range p.Parts {
		tasks, err := eval.Select(All(), strings.Split(part.Tasks, ","))
		if err != nil {
			return nil, fmt.Errorf("preset %s: %w", p.Name, err)
		}
		set := maps.Clone(part.Set)
		if set == nil {
			set = map[string]string{}
		}
		if fit && part.Fit != nil {
			maps.Copy(set, part.Fit(context))
		}
		for _, t := range tasks {
			if t.Beside {
				continue // in the group, but not in the published table
			}
			if part.Shots > 0 {
				t.Shots = part.Shots - 1
			}
			out = append(out, t.With(set))
		}
	}
	return out, nil
}
