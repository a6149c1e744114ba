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
	Doc         string // what it is, and what else it takes
	Parts       []PresetPart
	Checkpoints bool   // asked of every checkpoint of a run
	Command     string // of what another verb makes; there are no parts then
}

// PresetPart is one task or group of a preset.
type PresetPart struct {
	Tasks string                              // names and groups, with commas between them
	Shots int                                 // 0: the tasks' own; else one more than the number of examples
	Set   map[string]string                   // settings as published
	Fit   func(context int) map[string]string // what is different for models of a smaller context; nil: nothing
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

// Tasks are the preset's tasks: as published or, with fit, at the scale of models with the given context.
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
				continue // of the group, but not of the published table
			}
			if part.Shots > 0 {
				t.Shots = part.Shots - 1
			}
			out = append(out, t.With(set))
		}
	}
	return out, nil
}
