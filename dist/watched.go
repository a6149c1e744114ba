package dist

import (
	"time"

	"antiphase/tensor"
)

// watched is a Comm whose calls the job counts and times.
type watched struct {
	Comm
	job *Job
}

// do runs one collective. If the job has an error, it is clearer than the engine's and is returned instead.
func (w *watched) do(f func() error) error {
	if err := w.job.Err(); err != nil {
		return err
	}
	w.job.count.Add(1)
	w.job.began.Store(uint64(time.Since(w.job.start).Milliseconds()) + 1)
	err := f()
	w.job.began.Store(0)
	if err != nil && w.job.Err() != nil {
		return w.job.Err()
	}
	return err
}

func (w *watched) AllReduce(x tensor.Tensor) error {
	return w.do(func() error { return w.Comm.AllReduce(x) })
}

func (w *watched) ReduceScatter(out, x tensor.Tensor) error {
	return w.do(func() error { return w.Comm.ReduceScatter(out, x) })
}

func (w *watched) AllGather(out, x tensor.Tensor) error {
	return w.do(func() error { return w.Comm.AllGather(out, x) })
}

func (w *watched) Broadcast(x tensor.Tensor, root int) error {
	return w.do(func() error { return w.Comm.Broadcast(x, root) })
}

// Beside and Join are those of an Overlapper, or run f in order.
func (w *watched) Beside(f func() error) error {
	if o, ok := w.Comm.(Overlapper); ok {
		return o.Beside(f)
	}
	return f()
}

func (w *watched) Join() error {
	if o, ok := w.Comm.(Overlapper); ok {
		return w.do(o.Join)
	}
	return nil
}

// Split returns a group whose calls are counted too.
func (w *watched) Split(color int) (Comm, error) {
	var g Comm
	err := w.do(func() (err error) {
		g, err = w.Comm.Split(color)
		return err
	})
	return &watched{g, w.job}, err
}

// Close is a collective for MPI.
func (w *watched) Close() error { return w.do(w.Comm.Close) }

func (w *watched) Barrier() error { return w.do(w.Comm.Barrier) }
