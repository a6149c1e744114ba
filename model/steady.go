package model

import "antiphase/device"

// maxSteady bounds the rows of steps that are recorded, and therefore the number of recordings.
const maxSteady = 256

// steady is a repeated step with a fixed number of rows, all of them wanted.
type steady struct {
	repeat  device.Repeat
	version int // model version at recording
	work    func()
	ends    ends
}

// run runs a repeated step.
func (s *steady) run(c *Cache, n int) ends {
	m := c.model
	if s.version != m.version {
		s.repeat.Forget()
		s.version = m.version
	}
	if s.work == nil {
		s.work = func() {
			s.ends = c.end(c.forward(&c.feed, n, nil))
			if a, ok := c.dev.(device.Ahead); ok && m.Split() == nil {
				a.Advance(c.feed.view(feedIDs, n), c.feed.view(feedPos, n), s.ends.best)
			}
		}
	}
	if m.ByHost() {
		s.work()
	} else {
		s.repeat.Run(c.dev, s.work)
	}
	return s.ends
}
