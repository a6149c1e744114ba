package train

import (
	"encoding/json"
	"fmt"
	"strings"

	"antiphase/recipe"
)

// rule is how a resume treats a recipe key whose value differs from the checkpoint's. Every key is applied or refused;
// none is recorded and ignored.
type rule int

const (
	fixed  rule = iota // fixed when the run began: refused
	forced             // changes later computation: applied with --force
	free               // changes output, checkpoints kept, or length: applied
)

// rules maps a key, or all keys of a section ("data."), to its rule. A key that is not listed is fixed.
var rules = map[string]rule{
	"name": free, "train.steps": free, "train.log_every": free, "train.eval_every": free, "train.eval_batches": free,
	"train.save_every": free, "train.keep_last": free, "train.strict_save": free,
	"train.recompute": free,

	"optim.": forced, "data.": forced, "train.batch": forced, "train.micro_batch": forced, "train.seq_len": forced,
	"model.context": forced, "model.rope_theta": forced, "model.rope_interleaved": forced, "model.rope_scaling": forced,
	"model.norm_eps": forced, "model.head_norm": forced, "model.head_norm_eps": forced, "model.lambda_init": forced,
	"model.lambda_const": forced,
}

func ruleOf(path string) rule {
	if r, ok := rules[path]; ok {
		return r
	}
	section, _, _ := strings.Cut(path, ".")
	return rules[section+"."]
}

// compatible compares the current recipe with the checkpoint's, from which the run must be able to continue.
func (t resumer) compatible(c *saved) error {
	if !hasTensors(c.Checkpoint, momentsName) {
		return fmt.Errorf(
			"%w: an imported model, without the optimiser's state; begin with its weights in another folder: --from %s",
			ErrChanged, t.opt.Dir)
	}
	var old recipe.Recipe
	if err := old.Parse(c.state.Recipe); err != nil {
		return fmt.Errorf("state.json: recipe:%w", err)
	}
	t.keepAge(c.state.Recipe, old)
	var bad []string
	hint := "use another folder, the old values, or --force"
	for _, d := range recipe.Diff(old, t.recipe) {
		line := fmt.Sprintf("%s: was %s, is %s", d.Path, d.Old, d.New)
		switch r := ruleOf(d.Path); {
		case r == free, r == forced && t.opt.Force:
			t.opt.Say("changed: %s", line)
			c.newData = c.newData || strings.HasPrefix(d.Path, "data.")
		case r == fixed:
			line += " (fixed when the run began)"
			hint = "use the old values, or another folder, with --from to begin with this model's weights"
			fallthrough
		default:
			bad = append(bad, line)
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%w:\n  %s\n%s", ErrChanged, strings.Join(bad, "\n  "), hint)
	}
	return nil
}

// keepAge lets a run that began before a data key existed continue as it began, whatever the current default is.
func (t resumer) keepAge(stated json.RawMessage, old recipe.Recipe) {
	var keys struct{ Data map[string]json.RawMessage }
	if json.Unmarshal(stated, &keys) != nil {
		return // Parse has reported the error
	}
	for _, k := range []struct {
		key      string
		now, was *string
	}{
		{"order", &t.recipe.Data.Order, &old.Data.Order},
		{"held_out_by", &t.recipe.Data.HeldOutBy, &old.Data.HeldOutBy},
	} {
		if keys.Data[k.key] == nil && *k.now != *k.was {
			t.opt.Say("this run began with data.%s=%s and continues with it", k.key, *k.was)
			*k.now = *k.was
		}
	}
}
