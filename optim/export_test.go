package optim

// Early is the number of gradient elements that are summed over ranks before the backward pass has ended.
func (o *AdamW) Early() (n int) {
	for _, b := range o.buckets {
		if b.part > 0 {
			n += b.to - b.from
		}
	}
	return n
}

// EarlyCalls is the number of sums that they are.
func (o *AdamW) EarlyCalls() (n int) {
	for _, b := range o.buckets {
		if b.part > 0 {
			n++
		}
	}
	return n
}

// AtEnd calls f whenever a backward pass ends.
func (o *AdamW) AtEnd(f func()) {
	ready := o.ready
	o.ready = func(part int) {
		if part == 0 {
			f()
		}
		ready(part)
	}
}

// Buckets sets the smallest number of elements worth a call, and returns a function that sets it back.
func Buckets(smallest int) (restore func()) {
	was := minBucket
	minBucket = smallest
	return func() { minBucket = was }
}
