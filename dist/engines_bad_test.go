package dist

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"antiphase/tensor"
)

// Either half of a sum may fail: the caller learns of it, and no later call hides it.
func TestHalvesOfASumFail(t *testing.T) {
	lost := errors.New("lost")
	for only, reduces := range map[string][2]bool{"allToAll": {true, true}, "allGather": {true, false}} {
		onMemoryMPI(t, 1, false, func(m *mpi) {
			lib := m.lib.(*memoryMPI)
			lib.fail, lib.only = lost, only
			x := []float32{1, 2}
			for i, err := range []error{m.AllReduce(floatsOf(x)), m.ReduceScatter(floatsOf(x), floatsOf(x))} {
				if errors.Is(err, lost) != reduces[i] {
					t.Errorf("%s fails: %v", only, err)
				}
			}
			lib.fail = nil
		})
	}
}

// Every engine refuses what it cannot sum or divide, before any rank is asked.
func TestEnginesRefuse(t *testing.T) {
	of := func(ty tensor.DType, n int) tensor.Tensor {
		return tensor.Tensor{Buf: &tensor.Buffer{Host: make([]byte, 64), Addr: 4}, Type: ty, Rows: 1, Cols: n, Ld: n}
	}
	gaps := tensor.Tensor{Buf: of(tensor.F32, 1).Buf, Type: tensor.F32, Rows: 2, Cols: 2, Ld: 3}
	note := &noting{}
	for name, c := range map[string]Comm{
		"MPI": &mpi{size: 2, mpiThread: &mpiThread{}}, "NCCL": &gpus{size: 2, comm: note, dev: &stream{}},
	} {
		for want, call := range map[string]func() error{
			"AllReduce of BF16":          func() error { return c.AllReduce(of(tensor.BF16, 4)) },
			"AllReduce of F32[2,2 ld 3]": func() error { return c.AllReduce(gaps) },
			"AllReduce of ":              func() error { return c.AllReduce(tensor.Tensor{}) },
			"ReduceScatter of BF16": func() error {
				return c.ReduceScatter(of(tensor.BF16, 2),
					of(tensor.BF16, 4))
			},
			"ReduceScatter of F32[1,3] and F32[1,4] among 2 ranks": func() error {
				return c.ReduceScatter(of(tensor.F32,
					3), of(tensor.F32, 4))
			},
			"ReduceScatter of F64[1,2] and F32": func() error {
				return c.ReduceScatter(of(tensor.F64,
					2), of(tensor.F32, 4))
			},
			"AllGather of F32[1,2] and F32[1,3]": func() error {
				return c.AllGather(of(tensor.F32, 3),
					of(tensor.F32, 2))
			},
			"AllGather of I32[1,2] and F32[1,4]": func() error {
				return c.AllGather(of(tensor.F32, 4),
					of(tensor.I32, 2))
			},
		} {
			func() {
				defer func() {
					if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "dist: "+want) || len(note.calls) != 0 {
						t.Errorf("%s: %s, %q; want %s", name, got, note.calls, want)
					}
				}()
				_ = call()
			}()
		}
	}
}
