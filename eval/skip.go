package eval

import (
	"errors"
	"fmt"
)

// ErrCannot means that a model cannot be asked this kind of question: the task is skipped for it, and named.
var ErrCannot = errors.New("cannot be asked this")

// Skip is a task that a model was not asked.
type Skip struct {
	Model string `json:"model"`
	Task  string `json:"task"`
	Why   string `json:"why"`
}

// unable lists the models that cannot be asked a task.
func unable(targets []Target, task *Task) (out []Skip) {
	for i := range targets {
		if err := targets[i].can(task); err != nil {
			out = append(out, Skip{targets[i].Name, task.Name, err.Error()})
		}
	}
	return out
}

// can returns why a model cannot be asked a task.
func (t *Target) can(task *Task) error {
	if _, ours := t.LM.(*Subject); task.Inside && !ours {
		return fmt.Errorf("%w: the task looks into the model, which an endpoint does not allow", ErrCannot)
	}
	return nil
}
