package chat

import (
	"errors"
	"fmt"
	"time"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// budget is what one rendering may still use. It is stored in the template's context under a name that no template can
// spell.
type budget struct {
	steps, work int
	depth       int // of macro calls
	end         time.Time
	now         time.Time
	python      bool  // values are printed as Python prints them
	err         error // the first failure
}

const budgetName = "\x00budget"

func budgetOf(e *exec.Evaluator) *budget {
	v, _ := e.Environment.Context.Get(budgetName)
	b, _ := v.(*budget)
	return b
}

// fail records the first failure and returns it in gonja's form.
func (b *budget) fail(format string, args ...any) *exec.Value {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
	return exec.AsValue(b.err)
}

// longStep is the size of a result that may take so long to make that the time is looked at first: case is mapped at some
// megabytes a second.
const longStep = 1 << 16

// charge counts one step that produces n bytes; its result is nil or the error.
func (b *budget) charge(n int) *exec.Value {
	if b.err != nil {
		return exec.AsValue(b.err)
	}
	b.steps--
	b.work -= n
	switch {
	case b.steps < 0:
		return b.fail("takes more than %d steps", maxSteps)
	case n > maxValue:
		return b.fail("makes a value of more than %d bytes", maxValue)
	case b.work < 0:
		return b.fail("makes more than %d bytes", maxWork)
	case (b.steps%64 == 0 || n >= longStep) && time.Now().After(b.end):
		return b.fail("takes longer than %v", maxTime)
	}
	return nil
}

// made charges for a newly created value.
func (b *budget) made(v *exec.Value) *exec.Value {
	if v.IsError() {
		return v
	}
	left := maxValue
	err := measure(v.Interface(), 0, &left)
	if err != nil {
		return b.fail("%w", err)
	}
	if over := b.charge(maxValue - left); over != nil {
		return over
	}
	return v
}

var (
	errLarge  = fmt.Errorf("makes a value of more than %d bytes", maxValue)
	errDeep   = fmt.Errorf("makes a value nested deeper than %d", maxNesting)
	errShared = errors.New("puts a namespace into another value")
)

// measure subtracts from left roughly the printed size of a value. A list that contains another one twice counts it
// twice, as printing would. Namespaces are mutable and must not be nested, so no value contains itself.
func measure(v any, depth int, left *int) error {
	if *left -= 8; *left < 0 {
		return errLarge
	}
	if depth > maxNesting {
		return errDeep
	}
	inner := func(x any) error { return measure(x, depth+1, left) }
	switch v := v.(type) {
	case *exec.Value:
		return measure(v.Interface(), depth, left)
	case string:
		*left -= len(v)
	case map[string]any:
		if depth > 0 {
			return errShared
		}
	case *exec.Pair:
		return errors.Join(inner(v.Key), inner(v.Value))
	case *exec.Dict:
		for _, p := range v.Pairs {
			if err := inner(p); err != nil {
				return err
			}
		}
	case exec.ValuesList:
		return measureAll(v, depth, left)
	case []*exec.Value:
		return measureAll(v, depth, left)
	case []string:
		return measureAll(v, depth, left)
	case []any:
		return measureAll(v, depth, left)
	}
	if *left < 0 {
		return errLarge
	}
	return nil
}

func measureAll[T any](list []T, depth int, left *int) error {
	for _, x := range list {
		if err := measure(x, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}
