package model

import (
	"fmt"

	"antiphase/device"
)

// ahead lets a step start before the host has seen the tokens of the previous one. A steady step leaves the next step's
// ids and positions in the cache's feed (device.Ahead's Advance), so Follow only has to run it again. Its best tokens
// arrive through one of two asynchronous fetches.
type ahead struct {
	rows            int // rows of the last step if Follow can continue from it
	fetch           [2]device.Fetch
	started, landed int // fetches
}

// Ahead is the most rows that Follow takes. It is 0 if the device is synchronous, so nothing would be gained, and if
// ranks split the model, because each knows only its own ids.
func (c *Cache) Ahead() int {
	if _, ok := c.dev.(device.Ahead); ok && c.model.Split() == nil {
		return len(c.steady) - 1
	}
	return 0
}

// Follow runs n rows after those of the last Run or Follow, which had one wanted row in each of n slots. Each row
// is the most likely token at its slot's next position. The page table must have room for it.
func (c *Cache) Follow(n int) {
	if n == 0 || n != c.ahead.rows || n > c.Ahead() {
		panic(fmt.Sprintf("model: %d rows are to follow a step of %d", n, c.ahead.rows))
	}
	c.flush()
	c.model.settle()
	c.model.rows = n
	c.ends = c.steady[n].run(c, n)
}

// FetchBest starts an asynchronous ReadBest on a device that works ahead. At most two may be in flight.
func (c *Cache) FetchBest() {
	a := &c.ahead
	if a.started == a.landed+len(a.fetch) {
		panic(fmt.Sprintf("model: more than %d fetches on their way", len(a.fetch)))
	}
	f := &a.fetch[a.started%len(a.fetch)]
	if *f == nil {
		*f = c.dev.(device.Ahead).NewFetch(4 * c.Ahead())
	}
	(*f).Start(c.ends.best)
	a.started++
}

// WaitBest waits for the older FetchBest, but not for steps started after it. The error is the device's.
func (c *Cache) WaitBest(dst []int32) error {
	a := &c.ahead
	err := device.WaitI32(a.fetch[a.landed%len(a.fetch)], dst)
	a.landed++
	return err
}

// Fetching is the number of FetchBest calls without a WaitBest.
func (c *Cache) Fetching() int { return c.ahead.started - c.ahead.landed }

func (a *ahead) free() {
	for _, f := range a.fetch {
		if f != nil {
			f.Free()
		}
	}
	*a = ahead{}
}
