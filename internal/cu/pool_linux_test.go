//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// heap is a driver's memory in Go: room is what it has left, live what is allocated, cleared the sizes set to zero.
type heap struct {
	next, room int
	live       map[uintptr]int
	cleared    map[uintptr]int
	waits      int
}

// pooled is a gpu whose memory is a heap.
func pooled(t *testing.T, room int) (*gpu, *heap) {
	t.Helper()
	g, _ := idle(t)
	h := &heap{next: 1 << 20, room: room, live: map[uintptr]int{}, cleared: map[uintptr]int{}}
	g.api.memAlloc = purego.NewCallback(func(at unsafe.Pointer, bytes uintptr) uintptr {
		if int(bytes) > h.room {
			return 2 // CUDA_ERROR_OUT_OF_MEMORY
		}
		h.room -= int(bytes)
		h.next += int(bytes)
		h.live[uintptr(h.next)] = int(bytes)
		*(*uint64)(at) = uint64(h.next)
		return 0
	})
	g.api.memFree = purego.NewCallback(func(at uintptr) uintptr {
		h.room += h.live[at]
		delete(h.live, at)
		return 0
	})
	g.api.memset = purego.NewCallback(func(at, value, bytes, _ uintptr) uintptr {
		h.cleared[at] = int(bytes)
		return 0
	})
	g.api.memInfo = purego.NewCallback(func(free, total unsafe.Pointer) uintptr {
		*(*uint64)(free), *(*uint64)(total) = uint64(h.room), 1<<40
		return 0
	})
	g.api.streamSync = purego.NewCallback(func(uintptr) uintptr { h.waits++; return 0 })
	return g, h
}

// Freed memory serves the next request of its class, cleared; large memory goes back to the driver at once; what the
// pool holds counts as free, and is given back when the driver has no more, after the work on it is done.
func TestPoolOfMemory(t *testing.T) {
	g, h := pooled(t, 256<<20)
	alloc := func(bytes int) uintptr {
		t.Helper()
		at, err := g.Alloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		if h.cleared[at] < bytes || h.live[at] < h.cleared[at] {
			t.Errorf("%d bytes: %d cleared of %d", bytes, h.cleared[at], h.live[at])
		}
		return at
	}
	free := func(at uintptr) {
		t.Helper()
		if err := g.Free(at); err != nil {
			t.Fatal(err)
		}
	}
	a, b := alloc(1000), alloc(1000)
	free(a)
	clear(h.cleared)
	if again := alloc(1020); again != a || a == b {
		t.Errorf("%#x and %#x; freed %#x, given again %#x", a, b, a, again)
	}
	if other := alloc(5000); other == a || other == b {
		t.Error("memory of another class")
	}
	big := alloc(large)
	if free(big); h.live[big] != 0 || g.pool.used[big] != 0 {
		t.Error("large memory is kept")
	}
	last := alloc(large / 2)
	free(last)
	free(b)
	if n, err := g.Spare(); err != nil || n != int64(h.room+class(large/2)+class(1000)) {
		t.Errorf("%d bytes to spare of %d and the pool's %d (%v)", n, h.room, class(large/2)+class(1000), err)
	}
	if h.live[last] == 0 || h.waits != 0 {
		t.Fatal("the pool gives memory back before it is needed")
	}
	alloc(h.room + 1<<20) // more than the driver has
	if h.live[last] != 0 || h.live[b] != 0 || h.waits != 1 || len(g.pool.free) != 0 {
		t.Errorf("the pool kept %v after %d waits", g.pool.free, h.waits)
	}
	if _, err := g.Alloc(1 << 30); err == nil || !strings.Contains(err.Error(), "cuMemAlloc") {
		t.Errorf("more than there is: %v", err)
	}
	if err := g.Free(12345); err == nil || !strings.Contains(err.Error(), "0x3039") {
		t.Errorf("memory that nobody has: %v", err)
	}
	free(a)
	g.pool.close(g.context)
	if len(h.live) != 0 {
		t.Errorf("%v are left", slices.Sorted(maps.Values(h.live)))
	}
}
