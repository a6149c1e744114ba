package chat

import (
	"errors"
	"fmt"
	"time"
)

// budget is what one rendering may still use.
type budget struct {
	steps, work int
	depth       int // of calls of macros, and of map in map
	end         time.Time
	now         time.Time
}

// longStep is the size of a result that may take so long to make that the time is looked at first: case is mapped at
// some megabytes a second.
const longStep = 1 << 16

// charge counts one step that produces n bytes.
func (b *budget) charge(n int) error {
	b.steps--
	b.work -= n
	switch {
	case b.steps < 0:
		return fmt.Errorf("takes more than %d steps", maxSteps)
	case n > maxValue:
		return errLarge
	case b.work < 0:
		return fmt.Errorf("makes more than %d bytes", maxWork)
	case (b.steps%64 == 0 || n >= longStep) && time.Now().After(b.end):
		return errLate
	}
	return nil
}

// take is charge of a step that fails beyond the bounds.
func (b *budget) take(n int) {
	if err := b.charge(n); err != nil {
		fail("%w", err)
	}
}

// use charges for n bytes that are not a value of the template.
func (b *budget) use(n int) {
	if b.work -= n; b.work < 0 {
		fail("makes more than %d bytes", maxWork)
	}
}

// checkTime fails if the time is over.
func (b *budget) checkTime() {
	if time.Now().After(b.end) {
		fail("%w", errLate)
	}
}

// enter begins a call that may call itself again, and returns what ends it.
func (b *budget) enter() (leave func()) {
	if b.depth >= maxMacroDepth {
		fail("calls macros or filters deeper than %d", maxMacroDepth)
	}
	b.depth++
	return func() { b.depth-- }
}

// perItem is how much more memory an item of a list needs than its printed size.
const perItem = 24

// beforeHash looks at the time before a key is looked up whose hash may take long.
func (b *budget) beforeHash(key any) {
	if s, ok := isText(key); is[tuple](key) || ok && len(s) > 1000 {
		b.checkTime()
	}
}

// made charges for a newly created value.
func (b *budget) made(v any) any {
	left := maxValue
	if err := measure(v, 0, &left); err != nil {
		fail("%w", err)
	}
	switch v := v.(type) { // the items themselves were charged when they were made
	case list:
		b.work -= perItem * len(v)
	case tuple:
		b.work -= perItem * len(v)
	case *dict:
		b.work -= 2 * perItem * len(v.keys)
	case *generator:
		b.work -= perItem * len(v.rest)
	}
	b.take(maxValue - left)
	return v
}

var (
	errLarge  = fmt.Errorf("makes a value of more than %d bytes", maxValue)
	errDeep   = fmt.Errorf("makes a value nested deeper than %d", maxNesting)
	errLate   = fmt.Errorf("takes longer than %v", maxTime)
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
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case markup:
		*left -= len(v)
	case *undefined:
		*left -= len(v.why)
	case *namespace:
		if depth > 0 {
			return errShared
		}
	case *dict:
		if err := measureAll(v.keys, depth, left); err != nil {
			return err
		}
		return measureAll(v.values, depth, left)
	case list:
		return measureAll(v, depth, left)
	case tuple:
		return measureAll(v, depth, left)
	case *view:
		return measureAll(v.list, depth, left)
	case *generator:
		return measureAll(v.rest, depth, left)
	case *numbers:
		*left -= 8 * v.n
	}
	if *left < 0 {
		return errLarge
	}
	return nil
}

func measureAll(list []any, depth int, left *int) error {
	for _, x := range list {
		if err := measure(x, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}

// printed is the approximate printed size of a value; every value was measured when it was created.
func printed(v any) int {
	if s, ok := isText(v); ok {
		return len(s)
	}
	left := maxValue
	if measure(v, 0, &left) != nil {
		return maxValue + 1
	}
	return maxValue - left
}
