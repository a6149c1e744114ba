package cuda

import "antiphase/internal/cu"

// scratch is device memory for the duration of one op: work runs in order, so the next op may reuse it. It only grows.
// Outgrown memory is kept while work in flight or a graph may still use it.
type scratch struct {
	addr    uintptr
	size    int
	retired []uintptr
}

// drop frees outgrown memory. All work must be done and no graph alive.
func (s *scratch) drop(drv cu.Driver) error {
	for _, p := range s.retired {
		if err := drv.Free(p); err != nil {
			return err
		}
	}
	s.retired = s.retired[:0]
	return nil
}

// need returns the address of at least bytes of device memory, 256-byte aligned, with arbitrary content.
func (s *scratch) need(drv cu.Driver, bytes int) uintptr {
	if bytes > s.size {
		addr := alloc(drv, bytes+bytes/8)
		if s.addr != 0 {
			s.retired = append(s.retired, s.addr)
		}
		s.addr, s.size = addr, bytes+bytes/8
	}
	return s.addr
}

// scratch returns memory that is valid until the next op requests some: an op that needs several pieces requests once
// and divides it.
func (d *machine) scratch(bytes int) uintptr { return d.room.need(d.drv, bytes) }

// carver divides scratch memory. Run it twice: starting at 0 to compute the size, then at scratch(size) for the
// addresses.
type carver struct{ at uintptr }

// take is the next piece, 256-byte aligned.
func (c *carver) take(bytes int) uint64 {
	p := c.at
	c.at += (uintptr(bytes) + 255) &^ 255
	return uint64(p)
}
