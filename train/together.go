package train

import (
	"encoding/json"
	"errors"
	"fmt"

	"antiphase/checkpoint"
)

// told is a message between ranks that save: the draft's name, a rank's files, or an error.
type told struct {
	Draft     string             `json:"draft,omitempty"`
	Entries   []checkpoint.Entry `json:"entries,omitempty"`
	Failed    string             `json:"failed,omitempty"`
	NoSpace   bool               `json:"no_space,omitempty"`
	Committed bool               `json:"committed,omitempty"` // what failed came after the checkpoint was safe
}

// failed stores an error in it.
func (m *told) failed(err error) {
	if err != nil {
		m.Failed, m.NoSpace, m.Committed = err.Error(), errors.Is(err, checkpoint.ErrNoSpace),
			errors.Is(err, checkpoint.ErrCommitted)
	}
}

// error is the error of another rank.
func (m *told) error(rank int) error {
	switch {
	case m.Failed == "":
		return nil
	case m.Committed:
		return fmt.Errorf("%w: rank %d: %s", checkpoint.ErrCommitted, rank, m.Failed)
	case m.NoSpace:
		return fmt.Errorf("%w: rank %d: %s", checkpoint.ErrNoSpace, rank, m.Failed)
	}
	return fmt.Errorf("rank %d: %s", rank, m.Failed)
}

// tell sends every rank's message to every rank. The error is that of the first rank that has one, the same on all.
func (v *saver) tell(tag string, mine told) ([]told, error) {
	b, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	values, err := v.opt.Ranks.Exchange(tag, b)
	if err != nil {
		return nil, err
	}
	all := make([]told, len(values))
	for r, b := range values {
		if err := json.Unmarshal(b, &all[r]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	for r := range all {
		if err := all[r].error(r); err != nil {
			return all, err
		}
	}
	return all, nil
}

// writeTogether has every rank write its files into one draft, which rank 0 commits once all are on disk. A rank killed
// at any moment leaves the draft uncommitted, or a complete checkpoint.
func (v *saver) writeTogether(s *snapshot) error {
	var draft *checkpoint.Draft
	var begin told
	if !v.opt.follows() {
		var err error
		if draft, err = v.store.Begin(s.step); err == nil {
			begin.Draft = draft.Name()
		}
		begin.failed(err)
	}
	all, err := v.tell(s.tag+"-begin", begin)
	if err != nil {
		return err
	}
	if v.opt.follows() {
		if draft, err = v.store.Join(s.step, all[0].Draft); err != nil {
			return err
		}
	}
	var mine told
	mine.Entries, err = draft.Write(s.files)
	mine.failed(err)
	all, err = v.tell(s.tag+"-written", mine)
	var end told
	if !v.opt.follows() {
		if err != nil {
			draft.Drop()
		} else {
			end.failed(draft.Commit(entries(all)))
		}
	}
	if err != nil {
		return err
	}
	_, err = v.tell(s.tag+"-end", end)
	return err
}

func entries(all []told) (out []checkpoint.Entry) {
	for _, m := range all {
		out = append(out, m.Entries...)
	}
	return out
}
