package device

// Recorder is a Device that can keep work and start all of it again with one call, as a GPU's graph does.
type Recorder interface {
	// Record keeps what f starts, without running it. f must have run before, so that whatever is made at the first use is
	// there, and may neither Read nor Write nor Sync.
	Record(f func()) (Replay, error)
}

// Replay is recorded work. It reads and writes the addresses that it was recorded with: they must stay allocated.
type Replay interface {
	// Launch starts all of it; faults surface in Sync.
	Launch()
	// Free gives it back.
	Free() error
}

// Repeat is work that is done many times on the same addresses, with new content. The first time it runs as it is; the
// second time a Recorder records it, and from then on it is one call. Other devices run it each time.
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

// Recorded says whether the next Run is one call, and if not, what prevented it (nil where nothing did).
func (r *Repeat) Recorded() (bool, error) { return r.replay != nil, r.err }

// Forget lets go of what was recorded, before its addresses are freed or when the work changes.
func (r *Repeat) Forget() {
	if r.replay != nil {
		_ = r.replay.Free() // fails only with the device itself, whose next Sync tells
	}
	*r = Repeat{}
}
