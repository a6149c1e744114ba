package device

// Recorder is a Device that can capture work and replay it with one call, like a GPU's graph.
type Recorder interface {
	// Record captures what f starts, without running it. f must have run before, so that resources created at first use
	// exist, and must not Read, Write or Sync.
	Record(f func()) (Replay, error)
}

// Replay is recorded work. It reads and writes the addresses that it was recorded with: they must stay allocated.
type Replay interface {
	// Launch starts all of it; faults surface in Sync.
	Launch()
	// Free releases it.
	Free() error
}

// Repeat is work that is repeated on the same addresses with new content. The first run is direct; the second is
// recorded by a Recorder, and every later one is one call. Other devices run it each time.
type Repeat struct {
	ran    bool
	replay Replay
	err    error // why it could not be recorded
}

// Run does the work f, which is the same each time until Forget.
func (r *Repeat) Run(d Device, f func()) {
	if rec, ok := d.(Recorder); ok && r.ran && r.replay == nil && r.err == nil {
		r.replay, r.err = rec.Record(f)
	}
	r.ran = true
	if r.replay != nil {
		r.replay.Launch()
		return
	}
	f()
}

// Recorded reports whether the next Run is one call, and if not, the error that prevented it (nil if none).
func (r *Repeat) Recorded() (bool, error) { return r.replay != nil, r.err }

// Forget drops the recording, before its addresses are freed or when the work changes.
func (r *Repeat) Forget() {
	if r.replay != nil {
		_ = r.replay.Free() // fails only with the device itself, whose next Sync reports it
	}
	*r = Repeat{}
}
