package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
)

// tuned is the measure of rows that selects the learning rate, with orLoss; "" for held-out loss. TuneBy names a task
// of the experiment, as given to --task or by its first word if that is unique, or "probe", the first one; the headline
// measure of either counts.
func (s *Spec) tuned() (string, error) {
	if s.TuneBy == "" {
		return "", nil
	}
	measure, err := s.tuneMeasure()
	return measure + orLoss, err
}

func (s *Spec) tuneMeasure() (measure string, err error) {
	switch {
	case s.TuneBy == "probe" && len(s.Probes) == 0:
		return "", errors.New("--tune-by: probe, and no --probe asks anything while training")
	case s.TuneBy == "probe":
		measure, err = s.Probes[0].headline()
		return "probe." + measure, err
	case slices.Contains(s.Tasks, s.TuneBy):
		return s.TuneBy.headline()
	}
	var found []Ask
	for _, a := range s.Tasks {
		if strings.Fields(string(a))[0] == string(s.TuneBy) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0].headline()
	case 0:
		return "", fmt.Errorf("--tune-by: %q is none of the tasks asked here; want loss, probe or one of %q",
			string(s.TuneBy), s.Tasks)
	}
	return "", fmt.Errorf("--tune-by: %q can be any of %q; write the one that is meant in full",
		string(s.TuneBy), found)
}

// headline is measure, if it has a direction.
func (a Ask) headline() (string, error) {
	t, err := a.task(nil)
	if err == nil && t.Measures[0].Better == eval.Neither {
		err = fmt.Errorf("--tune-by: %s has no better and worse", t.Measures[0].Name)
	}
	return a.measure(), err
}

// measure is the name that the task's first measure has in rows.
func (a Ask) measure() string {
	t, _ := a.task(nil) // Check has seen it
	return labelled(t.Name+"."+t.Measures[0].Name, a.setting("needles"), a.setting("queries"))
}

// setting is the value of a key, from the ask itself or the task's default; "" if the task has no such key.
func (a Ask) setting(key string) string {
	t, _ := a.task(nil) // Check has seen it
	value := ""
	for _, s := range t.Settings {
		if s.Key == key {
			value = fmt.Sprint(s.Default)
		}
	}
	for _, w := range strings.Fields(string(a))[1:] {
		if k, v, _ := strings.Cut(w, "="); k == key {
			value = v
		}
	}
	return value
}

// labelled adds the settings that distinguish measures of one task.
func labelled(name, needles, queries string) string {
	if needles == "" {
		return name
	}
	return name + " N=" + needles + " R=" + queries
}
