package model

import (
	"fmt"

	"antiphase/device"
)

// ahead lets a step start before the host has seen the tokens of the one before it. A steady step leaves the next one's ids and positions in the
// cache's feed (device.Ahead's Advance), so that Follow need only run it again; its best tokens come through one of two fetches while it does.
type ahead struct {
	rows            int // of the last step, where Follow can go on from it
	fetch           [2]device.Fetch
	started, landed int // fetches
}

// Ahead is the most rows that Follow takes; 0 where the device and the host work in step, and nothing would be gained, and where ranks hold the
// model together, each of which knows its own ids alone.
func (c *Cache) Ahead() int {
	if _, ok := c.dev.(device.Ahead); ok && !c.split {
		return len(c.steady) - 1
	}
	return 0
}

// Follow runs the n rows behind those of the last Run or Follow on c, which had one row in each of n slots, all of them wanted: in every slot the
// likeliest token at the next position. The page table must have a place for it.
func (m *Model) Follow(c *Cache, n int) {
	if n == 0 || n != c.ahead.rows || n > c.Ahead() {
		panic(fmt.Sprintf("model: %d rows are to follow a step of %d", n, c.ahead.rows))
	}
	c.flush()
	m.settle()
	m.rows = n
	m.ends = c.steady[n].run(m, c, n)
}

// FetchBest starts what ReadBest does, on a device that works ahead. There may be two on their way.
func (m *Model) FetchBest(c *Cache) {
	a := &c.ahead
	if a.started == a.landed+len(a.fetch) {
		panic(fmt.Sprintf("model: more than %d fetches on their way", len(a.fetch)))
	}
	f := &a.fetch[a.started%len(a.fetch)]
	if *f == nil {
		*f = c.dev.(device.Ahead).NewFetch(4 * c.Ahead())
	}
	(*f).Start(m.ends.best)
	a.started++
}

// WaitBest waits for the older FetchBest, not for steps that were started behind it. The error is the device's.
func (m *Model) WaitBest(c *Cache, dst []int32) error {
	a := &c.ahead
	err := device.WaitI32(a.fetch[a.landed%len(a.fetch)], dst)
	a.landed++
	return err
}

// Fetching is how many FetchBest nobody has waited for.
func (c *Cache) Fetching() int { return c.ahead.started - c.ahead.landed }

func (a *ahead) free() {
	for _, f := range a.fetch {
		if f != nil {
			f.Free()
		}
	}
	*a = ahead{}
}
