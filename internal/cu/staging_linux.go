//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"errors"
	"fmt"
	"unsafe"
)

// errRecording rejects calls that would end a recording and leave events that cannot be waited for.
var errRecording = errors.New("a copy or a wait while work is recorded")

// Uploads go through pinned host memory, so that they run asynchronously and the caller's bytes are free at once: a
// ring of pieces that are filled one after the other, each with an event that tells when the GPU has read it.
const (
	pieceSize = 4 << 20
	pieces    = 4
)

type staging struct {
	piece    [pieces]pinned
	at, used int // the piece being filled, and how far
}

func (s *staging) open(c *context) error {
	for i := range s.piece {
		if err := s.piece[i].open(c, pieceSize); err != nil {
			return err
		}
	}
	return nil
}

func (s *staging) close(c *context) {
	for i := range s.piece {
		s.piece[i].close(c)
	}
	*s = staging{}
}

// pinned is pinned host memory, with an event for the GPU's access to it.
type pinned struct {
	host  unsafe.Pointer
	event uintptr
}

func (p *pinned) open(c *context, bytes int) error {
	if err := c.check("cuMemAllocHost",
		call(c.api.memAllocHost, uintptr(unsafe.Pointer(&p.host)), uintptr(bytes))); err != nil {
		return err
	}
	if err := c.check("cuEventCreate", call(c.api.eventCreate, c.result(0), 2)); err != nil { // 2: no timing
		return err
	}
	p.event = uintptr(c.out[0])
	return nil
}

func (p *pinned) close(c *context) {
	if p.event != 0 {
		_ = call(c.api.eventDestroy, p.event)
	}
	if p.host != nil {
		_ = call(c.api.memFreeHost, uintptr(p.host))
	}
	*p = pinned{}
}

// take returns n ≤ pieceSize bytes of pinned memory that the GPU no longer reads.
func (s *staging) take(c *context, n int) ([]byte, error) {
	if s.used+n > pieceSize {
		if err := c.check("cuEventRecord", fast(c.api.eventRecord, s.piece[s.at].event, c.stream)); err != nil {
			return nil, err
		}
		s.at, s.used = (s.at+1)%pieces, 0
		if err := c.check("cuEventSynchronize", fast(c.api.eventSync, s.piece[s.at].event)); err != nil {
			return nil, err
		}
	}
	b := unsafe.Slice((*byte)(unsafe.Add(s.piece[s.at].host, s.used)), n)
	s.used += (n + 255) &^ 255
	return b, nil
}

// cut divides a rectangle into parts of at most one piece: rows together if they fit, otherwise runs of one row. f gets
// each part and its range in the dense host bytes.
func cut(b Block, f func(part Block, from, to int) error) error {
	if b.Rows == 1 || b.Width > pieceSize {
		for r := range b.Rows {
			for at := 0; at < b.Width; at += pieceSize {
				n, host := min(pieceSize, b.Width-at), r*b.Width+at
				if err := f(Block{b.Addr + uintptr(r*b.Pitch+at), 1, n, n}, host, host+n); err != nil {
					return err
				}
			}
		}
		return nil
	}
	rows := pieceSize / max(1, b.Width)
	for r := 0; r < b.Rows; r += rows {
		n := min(rows, b.Rows-r)
		if err := f(Block{b.Addr + uintptr(r*b.Pitch), n, b.Width, b.Pitch}, r*b.Width, (r+n)*b.Width); err != nil {
			return err
		}
	}
	return nil
}

// Upload copies dense host bytes to the device, in as many pieces as it takes.
func (m *memory) Upload(dst Block, src []byte) error {
	if m.recording {
		return errRecording
	}
	defer m.enter()()
	return cut(dst, func(part Block, from, to int) error { return m.upload(part, src[from:to]) })
}

// Download waits for earlier work and copies to dense host bytes. While one part is copied out of pinned memory the
// next is in flight.
func (m *memory) Download(dst []byte, src Block) error {
	if m.recording {
		return errRecording
	}
	defer m.enter()()
	var late arrival
	err := cut(src, func(part Block, from, to int) error {
		next, err := m.download(dst[from:to], part)
		if err != nil {
			return err
		}
		last := late
		late = next
		return m.land(last)
	})
	if err != nil {
		return err
	}
	return m.land(late)
}

// upload copies one part.
func (m *memory) upload(dst Block, src []byte) error {
	stage, err := m.stage.take(m.context, len(src))
	if err != nil {
		return err
	}
	copy(stage, src)
	from := uintptr(unsafe.Pointer(&stage[0]))
	if dst.Rows == 1 {
		return m.check("cuMemcpyHtoDAsync", fast(m.api.htod, dst.Addr, from, uintptr(len(src)), m.stream))
	}
	m.desc2D = [16]uint64{2: onHost, 3: uint64(from), 6: uint64(dst.Width),
		9: onDevice, 11: uint64(dst.Addr), 13: uint64(dst.Pitch), 14: uint64(dst.Width), 15: uint64(dst.Rows)}
	return m.copy2D()
}

// arrival is a part in flight through pinned memory.
type arrival struct {
	dst, stage []byte
	piece      int
}

// download starts the copy of one part.
func (m *memory) download(dst []byte, src Block) (arrival, error) {
	stage, err := m.stage.take(m.context, len(dst))
	if err != nil {
		return arrival{}, err
	}
	to := uintptr(unsafe.Pointer(&stage[0]))
	if src.Rows == 1 {
		err = m.check("cuMemcpyDtoHAsync", fast(m.api.dtoh, to, src.Addr, uintptr(len(dst)), m.stream))
	} else {
		m.desc2D = [16]uint64{2: onDevice, 4: uint64(src.Addr), 6: uint64(src.Pitch),
			9: onHost, 10: uint64(to), 13: uint64(src.Width), 14: uint64(src.Width), 15: uint64(src.Rows)}
		err = m.copy2D()
	}
	return arrival{dst, stage, m.stage.at}, err
}

// land waits for a part and copies it out. A piece that is done has an event after its last copy.
func (m *memory) land(a arrival) error {
	if a.dst == nil {
		return nil
	}
	code := int32(0)
	if a.piece != m.stage.at {
		code = fast(m.api.eventSync, m.stage.piece[a.piece].event)
	} else {
		code = fast(m.api.streamSync, m.stream)
	}
	if err := m.check("wait for the GPU", code); err != nil {
		return err
	}
	copy(a.dst, a.stage)
	return nil
}

// fetch is pinned memory, which has one address for both sides. It does not use the copy engine: switching between
// engines for a few bytes cost a decoding step more than writing them.
type fetch struct {
	ctx   *context
	place pinned
	size  int
}

// NewFetch takes the pinned memory.
func (m *memory) NewFetch(bytes int) (Fetch, error) {
	defer m.enter()()
	f := &fetch{ctx: m.context, size: bytes}
	if err := f.place.open(m.context, bytes); err != nil {
		f.place.close(m.context)
		return nil, err
	}
	return f, nil
}

// Addr is the pinned memory.
func (f *fetch) Addr() uintptr { return uintptr(f.place.host) }

// Mark records the event.
func (f *fetch) Mark() error {
	if f.ctx.recording {
		return errRecording
	}
	defer f.ctx.enter()()
	return f.ctx.check("cuEventRecord", fast(f.ctx.api.eventRecord, f.place.event, f.ctx.stream))
}

// Wait waits for the mark only.
func (f *fetch) Wait(dst []byte) error {
	if len(dst) > f.size {
		return fmt.Errorf("%d bytes of pinned memory of %d", len(dst), f.size)
	}
	defer f.ctx.enter()()
	if err := f.ctx.check("wait for the GPU", fast(f.ctx.api.eventSync, f.place.event)); err != nil {
		return err
	}
	copy(dst, unsafe.Slice((*byte)(f.place.host), f.size))
	return nil
}

// Free waits for work in flight, if there is any.
func (f *fetch) Free() error {
	defer f.ctx.enter()()
	err := f.ctx.check("wait for the GPU", fast(f.ctx.api.eventSync, f.place.event))
	f.place.close(f.ctx)
	return err
}
