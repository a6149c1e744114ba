package dist

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"antiphase/internal/cu"
)

// noGPU is a device on which NCCL never gets as far as its stream.
type noGPU struct{}

func (noGPU) Stream() cu.Driver { return nil }

// Without NCCL rank 0 says so, and the others learn it from rank 0: one reason on every rank, and none waits.
func TestNCCLAbsent(t *testing.T) {
	if _, err := cu.NewCommID(); !errors.Is(err, cu.ErrUnavailable) {
		t.Skip("NCCL is here: ", err)
	}
	var lost [3]atomic.Int32
	jobs, errs := joinAll(t, "file://"+t.TempDir(), 3,
		func(r int, o *Options) { o.OnLost = func(error) { lost[r].Add(1) } })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() { _, errs[r] = NCCL(j, noGPU{}) })
	}
	wg.Wait()
	const reason = "no NCCL, which several GPUs need"
	if !errors.Is(errs[0], cu.ErrUnavailable) || !strings.Contains(errs[0].Error(), reason) {
		t.Errorf("rank 0: %v", errs[0])
	}
	for r, err := range errs[1:] {
		if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), "rank 0 (") ||
			!strings.Contains(err.Error(), reason) {
			t.Errorf("rank %d: %v", r+1, err)
		}
	}
	for end := time.Now().Add(time.Minute); lost[1].Load()+lost[2].Load() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * grace) // rank 0 hears of its own failure by then
	if lost[0].Load() != 0 || lost[1].Load() != 1 || lost[2].Load() != 1 {
		t.Errorf("told of the loss: rank 0 %d times, rank 1 %d, rank 2 %d; want 0, 1, 1", lost[0].Load(),
			lost[1].Load(), lost[2].Load())
	}
	for _, j := range jobs {
		j.shut()
	}
}
