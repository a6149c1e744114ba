package model

import "fmt"

// Batch is B sequences of T tokens in host memory, row b·T+t. Targets is nil if no loss is needed; −1 there means "not
// scored". Starts (see data.Loader) isolates documents; if nil, every token sees all earlier ones.
type Batch struct {
	B, T                 int
	IDs, Targets, Starts []int32
}

func (b *Batch) check(c *Config) error {
	n := b.B * b.T
	if b.B < 1 || b.T < 1 || len(b.IDs) != n || b.Targets != nil && len(b.Targets) != n || b.Starts != nil &&
		len(b.Starts) != n {
		return fmt.Errorf("model: batch of %d×%d has %d ids, %d targets, %d starts", b.B, b.T, len(b.IDs),
			len(b.Targets), len(b.Starts))
	}
	if b.T > c.Context {
		return fmt.Errorf("model: sequence of %d tokens, context is %d", b.T, c.Context)
	}
	return checkIDs(b.IDs, b.Targets, c.Vocab)
}

func checkIDs(ids, targets []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("model: id %d at row %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	for i, id := range targets {
		if id < -1 || int(id) >= vocab {
			return fmt.Errorf("model: target %d at row %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	return nil
}
