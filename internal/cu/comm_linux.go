//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"antiphase/internal/handlers"
)

// nccl holds the library's entry points.
type nccl struct {
	name                                                                       string
	version                                                                    int
	allReduce, reduceScatter, allGather, broadcast                             uintptr
	commAbort, commDestroy, asyncError, errorString, lastError, getVersion, id uintptr
	initRank                                                                   uintptr
}

// openNCCL loads the library once per process.
var openNCCL = sync.OnceValues(func() (*nccl, error) {
	l, err := openLib("libnccl.so.2")
	if err != nil {
		return nil, unavailable("no NCCL, which several GPUs need: %v; ANTIPHASE_CUDA_PATH may name its folder", err)
	}
	n := &nccl{name: l.name}
	err = l.symbols(map[string]*uintptr{
		"ncclAllReduce": &n.allReduce, "ncclReduceScatter": &n.reduceScatter, "ncclAllGather": &n.allGather,
		"ncclBroadcast": &n.broadcast, "ncclCommAbort": &n.commAbort, "ncclCommDestroy": &n.commDestroy,
		"ncclCommGetAsyncError": &n.asyncError, "ncclGetErrorString": &n.errorString, "ncclGetLastError": &n.lastError,
		"ncclGetVersion": &n.getVersion, "ncclGetUniqueId": &n.id, "ncclCommInitRank": &n.initRank,
	})
	if err != nil {
		return nil, unavailable("NCCL is too old: %v", err)
	}
	var v int32
	_ = call(n.getVersion, uintptr(unsafe.Pointer(&v)))
	n.version = int(v)
	return n, nil
})

// NewCommID makes the id of a new group of ranks.
func NewCommID() (CommID, error) {
	n, err := openNCCL()
	if err != nil {
		return CommID{}, err
	}
	var id CommID
	err = n.check("ncclGetUniqueId", call(n.id, uintptr(unsafe.Pointer(&id[0]))), 0)
	return id, err
}

// check describes an ncclResult_t. NCCL's own message for two ranks on one GPU is unclear.
func (n *nccl) check(what string, code int32, comm uintptr) error {
	if code == 0 {
		return nil
	}
	text, _, _ := purego.SyscallN(n.errorString, uintptr(code))
	more, _, _ := purego.SyscallN(n.lastError, comm)
	why := strings.TrimSpace(goString(*(**byte)(unsafe.Pointer(&more))))
	hint := ""
	if strings.Contains(why, "Duplicate GPU") {
		hint = "; two ranks use one GPU: give each its own (--device cuda:N, or a launcher that sets the local rank)"
	}
	return fmt.Errorf("%s: %s: %s (NCCL %d, code %d)%s", what, goString(*(**byte)(unsafe.Pointer(&text))), why,
		n.version, code, hint)
}

// communicator is a Communicator on the stream of a context.
type communicator struct {
	ctx    *context
	lib    *nccl
	comm   uintptr
	beside beside
	once   sync.Once
	alive  sync.Mutex // held by Fault, which must not poll what Abort frees
	gone   bool
}

// Join makes g one of several ranks.
func (g *gpu) Join(id CommID, rank, size int) (Communicator, error) {
	n, err := openNCCL()
	if err != nil {
		return nil, err
	}
	defer handlers.Keep()()
	defer g.enter()()
	type byValue struct{ bytes CommID } // ncclUniqueId is passed by value
	var initRank func(comm *uintptr, size int32, id byValue, rank int32) int32
	purego.RegisterFunc(&initRank, n.initRank)
	c := &communicator{ctx: g.context, lib: n}
	comm := new(uintptr)
	if err := n.check("ncclCommInitRank", initRank(comm, int32(size), byValue{id}, int32(rank)), 0); err != nil {
		return nil, err
	}
	c.comm = *comm
	return c, nil
}

// The codes of ncclDataType_t and ncclRedOp_t.
const (
	ncclInt8    = 0
	ncclFloat32 = 7
	ncclFloat64 = 8
	ncclSum     = 0
)

func number(double bool) uintptr {
	if double {
		return ncclFloat64
	}
	return ncclFloat32
}

func (c *communicator) AllReduce(addr uintptr, n int, double bool) error {
	defer c.ctx.enter()()
	return c.lib.check("ncclAllReduce", fast(c.lib.allReduce, addr, addr, uintptr(n), number(double), ncclSum, c.comm,
		c.beside.stream(c.ctx)), c.comm)
}

func (c *communicator) ReduceScatter(dst, src uintptr, n int, double bool) error {
	defer c.ctx.enter()()
	return c.lib.check("ncclReduceScatter", fast(c.lib.reduceScatter, src, dst, uintptr(n), number(double), ncclSum,
		c.comm, c.beside.stream(c.ctx)), c.comm)
}

func (c *communicator) AllGather(dst, src uintptr, bytes int) error {
	defer c.ctx.enter()()
	return c.lib.check("ncclAllGather", fast(c.lib.allGather, src, dst, uintptr(bytes), ncclInt8, c.comm,
		c.beside.stream(c.ctx)), c.comm)
}

func (c *communicator) Broadcast(addr uintptr, bytes, root int) error {
	defer c.ctx.enter()()
	return c.lib.check("ncclBroadcast", fast(c.lib.broadcast, addr, addr, uintptr(bytes), ncclInt8, uintptr(root),
		c.comm, c.beside.stream(c.ctx)), c.comm)
}

// Fault polls for asynchronous errors; work in flight is not an error.
func (c *communicator) Fault() error {
	const inProgress = 7
	c.alive.Lock()
	defer c.alive.Unlock()
	if c.gone {
		return nil
	}
	code := new(int32)
	if err := c.lib.check("ncclCommGetAsyncError", call(c.lib.asyncError, c.comm, uintptr(unsafe.Pointer(code))),
		c.comm); err != nil {
		return err
	}
	if *code == inProgress {
		return nil
	}
	return c.lib.check("NCCL", *code, c.comm)
}

func (c *communicator) Abort() {
	c.once.Do(func() {
		c.alive.Lock()
		c.gone = true
		c.alive.Unlock()
		_ = call(c.lib.commAbort, c.comm)
	})
}

func (c *communicator) Close() (err error) {
	c.once.Do(func() {
		defer c.ctx.enter()()
		err = c.lib.check("ncclCommDestroy", call(c.lib.commDestroy, c.comm), c.comm)
		c.beside.close(c.ctx)
	})
	return err
}

func (c *communicator) Version() int { return c.lib.version }
