package cuda

import (
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// scratch is device memory for the length of one op: work runs in one order, so the next op may have the same bytes.
// It only grows. Outgrown memory is kept while work under way or a graph may still use it.
type scratch struct {
	addr    uintptr
	size    int
	retired []uintptr
}

// drop frees what was outgrown. All work must be done and no graph alive.
func (s *scratch) drop(drv cu.Driver) error {
	for _, p := range s.retired {
		if err := drv.Free(p); err != nil {
			return err
		}
	}
	s.retired = s.retired[:0]
	return nil
}

// need gives the address of at least bytes of device memory on 256 bytes, with arbitrary content.
func (s *scratch) need(drv cu.Driver, bytes int) uintptr {
	if bytes > s.size {
		addr, err := drv.Alloc(bytes + bytes/8)
		if err != nil {
			panic(&tensor.NoMemory{Where: "device", Bytes: bytes, Free: -1, Err: err})
		}
		if s.addr != 0 {
			s.retired = append(s.retired, s.addr)
		}
		s.addr, s.size = addr, bytes+bytes/8
	}
	return s.addr
}

// scratch gives room that is valid until the next op asks: an op that needs several pieces asks once and cuts them.
func (d *Device) scratch(bytes int) uintptr { return d.room.need(d.drv, bytes) }

// carver cuts pieces off scratch memory. Walk it twice: from 0 to learn the size, from scratch(size) for the addresses.
type carver struct{ at uintptr }

// take is the next piece, on 256 bytes.
func (c *carver) take(bytes int) uint64 {
	p := c.at
	c.at += (uintptr(bytes) + 255) &^ 255
	return uint64(p)
}
