package main

import (
	"fmt"
	"strconv"
	"strings"

	"antiphase/model"
)

// layout is how ranks share a run.
type layout struct {
	data   int  // ranks that divide the rows of a batch
	tensor int  // ranks that hold one model together
	shard  bool // data ranks share the optimiser's moments
}

// String is the layout as --parallel takes it.
func (l layout) String() string {
	zero := 0
	if l.shard {
		zero = 1
	}
	return fmt.Sprintf("dp=%d,tp=%d,zero=%d", l.data, l.tensor, zero)
}

// parseLayout reads --parallel for a world of ranks; with world 0 any number is right. What is left out of dp and tp follows from
// the other and the number of ranks.
func parseLayout(text string, world int) (layout, error) {
	l := layout{tensor: 1}
	tensorSet := false
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		switch {
		case text == "":
		case err != nil || n < 0 || n == 0 && key != "zero":
			return l, usage(fmt.Errorf("--parallel: %q, want key=number", part))
		case key == "dp":
			l.data = n
		case key == "tp":
			l.tensor, tensorSet = n, true
		case key == "zero" && n <= 1:
			l.shard = n == 1
		case key == "zero":
			return l, usage(fmt.Errorf("--parallel: zero=%d; there are 0, and 1, which shards the moments", n))
		default:
			return l, usage(fmt.Errorf("--parallel: %q is unknown; there are dp, tp and zero", key))
		}
	}
	switch {
	case world == 0 && l.data == 0:
		l.data = 1
	case world == 0:
	case l.data == 0 && world%l.tensor == 0:
		l.data = world / l.tensor
	case l.data > 0 && !tensorSet && world%l.data == 0 && l.data < world:
		return l, usage(fmt.Errorf("--parallel: dp=%d, but there are %d ranks; add tp=%d for models that %d ranks hold together", l.data, world,
			world/l.data, world/l.data))
	}
	if world > 0 && l.data*l.tensor != world {
		return l, usage(fmt.Errorf("--parallel: dp=%d × tp=%d, but there are %d ranks", max(l.data, 1), l.tensor, world))
	}
	l.shard = l.shard && l.data > 1
	return l, nil
}

// check says why a model cannot be shared like this.
func (l layout) check(c model.Config) error {
	if err := c.CheckSplit(l.tensor); err != nil {
		return usage(fmt.Errorf("--parallel: %w", err))
	}
	return nil
}

// layout is --parallel's. A dry run may name the layout of ranks that are not here.
func (f *trainFlags) layout(world int) (layout, error) {
	if f.dry && world == 1 {
		world = 0
	}
	return parseLayout(f.parallel, world)
}
