//go:build (amd64 || arm64) && !nogpu

package dist

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"antiphase/internal/handlers"
	"antiphase/tensor"
)

// mpiAPI holds an MPI library's entry points and the handles that its header defines.
type mpiAPI struct {
	version string

	initThread, commRank, commSize, setHandler, errorString uintptr
	allreduce, alltoall, allgather, bcast, barrierFn        uintptr
	finalizeFn, libraryVersion, commSplit                   uintptr

	comm, byteType, floatType, doubleType, sum, errorsReturn uintptr
	inPlace                                                  uintptr

	ints   [4]int32 // for results of calls
	handle uintptr
	text   [8192]byte
}

func (a *mpiAPI) table() map[string]*uintptr {
	return map[string]*uintptr{
		"MPI_Init_thread": &a.initThread, "MPI_Comm_rank": &a.commRank, "MPI_Comm_size": &a.commSize,
		"MPI_Comm_set_errhandler": &a.setHandler, "MPI_Error_string": &a.errorString, "MPI_Allreduce": &a.allreduce,
		"MPI_Alltoall": &a.alltoall, "MPI_Allgather": &a.allgather, "MPI_Bcast": &a.bcast, "MPI_Barrier": &a.barrierFn,
		"MPI_Finalize": &a.finalizeFn, "MPI_Get_library_version": &a.libraryVersion,
		"MPI_Comm_split": &a.commSplit,
	}
}

// openMPILib loads the library of the launcher's family and initialises it.
func openMPILib(l Launch) (mpiLib, error) {
	names, err := mpiNames(l, os.Getenv)
	if err != nil {
		return nil, err
	}
	var tried []string
	for _, name := range names {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		a := &mpiAPI{}
		if err := a.load(name, h); err != nil {
			return nil, err
		}
		return a, a.start()
	}
	return nil, fmt.Errorf(
		"dist: MPI is %w: %s; install the library of the launcher (%s), or let ANTIPHASE_MPI name it",
		ErrUnavailable, strings.Join(tried, "; "), l.Source)
}

// load finds the symbols and determines the library's family from them.
func (a *mpiAPI) load(name string, h uintptr) error {
	for symbol, at := range a.table() {
		p, err := purego.Dlsym(h, symbol)
		if err != nil {
			return fmt.Errorf("dist: %s is not an MPI library: it has no %s", name, symbol)
		}
		*at = p
	}
	a.call(a.libraryVersion, a.at(unsafe.Pointer(&a.text[0])), a.at(unsafe.Pointer(&a.ints[0])))
	a.version, _, _ = strings.Cut(string(a.text[:min(max(a.ints[0], 0), int32(len(a.text)))]), "\n")
	a.version, _, _ = strings.Cut(strings.TrimRight(a.version, "\x00"), ",")
	a.version = strings.Join(strings.Fields(a.version), " ")
	if a.openMPIHandles(h) {
		return nil
	}
	for _, family := range []string{"MPICH", "Intel(R) MPI", "MVAPICH"} {
		if strings.Contains(a.version, family) {
			a.mpichHandles()
			return nil
		}
	}
	return fmt.Errorf("dist: %s is %q, neither Open MPI nor of MPICH's family", name, a.version)
}

// openMPIHandles uses the addresses of Open MPI's own objects.
func (a *mpiAPI) openMPIHandles(h uintptr) bool {
	for symbol, at := range map[string]*uintptr{
		"ompi_mpi_comm_world": &a.comm, "ompi_mpi_byte": &a.byteType, "ompi_mpi_float": &a.floatType,
		"ompi_mpi_double": &a.doubleType,
		"ompi_mpi_op_sum": &a.sum, "ompi_mpi_errors_return": &a.errorsReturn,
	} {
		p, err := purego.Dlsym(h, symbol)
		if err != nil {
			return false
		}
		*at = p
	}
	a.inPlace = 1
	return true
}

// mpichHandles are the integers of the common MPICH ABI.
func (a *mpiAPI) mpichHandles() {
	a.comm, a.byteType, a.floatType, a.doubleType = 0x44000000, 0x4c00010d, 0x4c00040a, 0x4c00080b
	a.sum, a.errorsReturn, a.inPlace = 0x58000003, 0x54000001, ^uintptr(0)
}

// start initialises the library for calls from this thread only, with errors returned.
func (a *mpiAPI) start() error {
	defer handlers.Keep()()
	const funneled = 1
	if err := a.check("MPI_Init_thread", a.call(a.initThread, 0, 0, funneled,
		a.at(unsafe.Pointer(&a.ints[0])))); err != nil {
		return err
	}
	return a.check("MPI_Comm_set_errhandler", a.call(a.setHandler, a.comm, a.errorsReturn))
}

// at is the address of a field of a, which is on the heap and outlives the call.
func (a *mpiAPI) at(p unsafe.Pointer) uintptr { return uintptr(p) }

// call calls a C function that returns an int.
func (a *mpiAPI) call(fn uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, args...)
	return int32(r)
}

// check describes an MPI error.
func (a *mpiAPI) check(what string, code int32) error {
	if code == 0 {
		return nil
	}
	text := "unknown error"
	if a.call(a.errorString, uintptr(code), a.at(unsafe.Pointer(&a.text[0])), a.at(unsafe.Pointer(&a.ints[0]))) == 0 {
		text = string(a.text[:min(max(a.ints[0], 0), int32(len(a.text)))])
	}
	return fmt.Errorf("dist: %s: %s (code %d)", what, text, code)
}

func (a *mpiAPI) name() string { return a.version }

func (a *mpiAPI) world() (rank, size int, err error) {
	err = errors.Join(
		a.check("MPI_Comm_rank", a.call(a.commRank, a.comm, a.at(unsafe.Pointer(&a.ints[0])))),
		a.check("MPI_Comm_size", a.call(a.commSize, a.comm, a.at(unsafe.Pointer(&a.ints[1])))))
	return int(a.ints[0]), int(a.ints[1]), err
}

// ptr is the address of b's first byte; empty collectives are not called.
func ptr(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

func (a *mpiAPI) allReduce(x []byte, t tensor.DType) error {
	kind := a.floatType
	if t == tensor.F64 {
		kind = a.doubleType
	}
	return a.check("MPI_Allreduce", a.call(a.allreduce, a.inPlace, ptr(x), uintptr(len(x)/t.Size()), kind, a.sum,
		a.comm))
}

func (a *mpiAPI) allToAll(dst, src []byte, n int) error {
	return a.check("MPI_Alltoall", a.call(a.alltoall, ptr(src), uintptr(n), a.byteType, ptr(dst),
		uintptr(n), a.byteType, a.comm))
}

func (a *mpiAPI) allGather(dst, src []byte, n int) error {
	return a.check("MPI_Allgather", a.call(a.allgather, ptr(src), uintptr(n), a.byteType, ptr(dst), uintptr(n),
		a.byteType, a.comm))
}

func (a *mpiAPI) broadcast(x []byte, root int) error {
	return a.check("MPI_Bcast", a.call(a.bcast, ptr(x), uintptr(len(x)), a.byteType, uintptr(root), a.comm))
}

func (a *mpiAPI) barrier() error { return a.check("MPI_Barrier", a.call(a.barrierFn, a.comm)) }

// split is the library seen from the group of ranks with this color, in the order of keys. A handle is a pointer, or an
// integer of half its size.
func (a *mpiAPI) split(color, key int) (mpiLib, error) {
	a.handle = 0
	err := a.check("MPI_Comm_split", a.call(a.commSplit, a.comm, uintptr(color), uintptr(key),
		a.at(unsafe.Pointer(&a.handle))))
	g := *a
	g.comm = a.handle
	return &g, err
}

func (a *mpiAPI) finalize() error { return a.check("MPI_Finalize", a.call(a.finalizeFn)) }
