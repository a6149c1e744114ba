package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/internal/fault"
	"antiphase/internal/safetensors"
	"antiphase/optim"
)

// saver writes checkpoints while training continues. One is in flight at a time and holds one copy of this process's
// state; the next waits for it.
type saver struct {
	*run   // whose checkpoints they are
	keep   []optim.Slice
	copies [3][][]float32 // by kind, see optim.First; of each slice
	reader *optim.Reader
	done   chan error // of the save in flight; nil if there is none
	count  int        // saves begun
	last   time.Time  // when training continued after the last one, or began
	took   time.Duration
}

// due reports whether the last checkpoint is older than after, and saving takes less than 2 % of the time; after 0 is
// never.
func (v *saver) due(now time.Time, after time.Duration) bool {
	return after > 0 && now.Sub(v.last) >= max(after, 50*v.took)
}

// snapshot is a checkpoint's step and files, in host memory.
type snapshot struct {
	step  int64
	must  bool // its failure ends the run
	tag   string
	files []checkpoint.File // of this process
}

// save begins a checkpoint of this step, and waits for it if must is set. A full disk is retried at the next save,
// unless this is the last chance: must is set.
func (v *saver) save(must bool) error { return v.start(must, must) }

// begin is save for the last chance, without waiting.
func (v *saver) begin() error { return v.start(true, false) }

// start stops training while the state is copied to host memory, and until the previous save is written. It also waits
// for this one if the device computes on the host, because writing would take cores from it.
func (v *saver) start(must, wait bool) error {
	v.clock.lap(&v.clock.step)
	begin := v.clock.mark
	defer func() {
		v.clock.lap(&v.clock.save)
		v.last, v.took = v.clock.mark, v.clock.mark.Sub(begin)
	}()
	if err := v.metrics.Sync(); err != nil { // the rows up to a checkpoint are as durable as the checkpoint
		v.opt.Say("warning: %v", err)
	}
	if err := v.finish(true); err != nil {
		return err
	}
	s, err := v.snapshot(must)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	v.done = done
	go func() {
		defer fault.Guard()()
		done <- v.write(s)
	}()
	if wait || !v.besides() {
		return v.finish(true)
	}
	return nil
}

// besides reports whether checkpoints are written while training continues. On a CPU the step after a save ran at 0.61
// of the others' speed, because every op waits for the core that hashes and writes.
func (v *saver) besides() bool {
	return v.opt.beside || device.IdentityOf(v.opt.Device).Device != "cpu"
}

// finish collects the result of the save in flight; without wait only if it is done.
func (v *saver) finish(wait bool) error {
	var err error
	switch {
	case v.done == nil:
		return nil
	case wait:
		err = <-v.done
	default:
		select {
		case err = <-v.done:
		default:
			return nil
		}
	}
	v.done = nil
	switch {
	case errors.Is(err, checkpoint.ErrCommitted), errors.Is(err, errLater):
		v.opt.Say("warning: %v", err)
		return nil
	}
	return err
}

// errLater marks the error of a save that will be retried.
var errLater = errors.New("not written, trying again at the next one")

// snapshot copies this process's state to the host.
func (v *saver) snapshot(must bool) (*snapshot, error) {
	if v.keep == nil {
		v.keep, v.reader = v.optim.Slices(), v.optim.NewReader()
		for what := range v.copies {
			for _, s := range v.keep {
				v.copies[what] = append(v.copies[what], make([]float32, s.To-s.From))
			}
		}
	}
	for i := range v.keep {
		for what := range v.copies {
			v.reader.Read(&v.keep[i], what, v.copies[what][i])
		}
	}
	v.count++
	s := &snapshot{step: int64(v.state.Step), must: must, tag: "save-" + strconv.Itoa(v.count)}
	weights, err := v.tensors(map[int]string{optim.Value: ""})
	if err != nil {
		return nil, err
	}
	moments, err := v.tensors(map[int]string{optim.First: "m/", optim.Second: "v/"})
	if err != nil {
		return nil, err
	}
	if len(v.keep) > 0 {
		s.files = []checkpoint.File{{Name: v.fileName(modelName), Write: weights},
			{Name: v.fileName(momentsName), Write: moments}}
	}
	if v.opt.follows() {
		return s, nil
	}
	v.state.Format, v.state.Data, v.state.Recipe = stateFormat, v.loader.Position(), v.recipe.JSON()
	state, err := json.MarshalIndent(v.state, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("train: state of step %d: %w", v.state.Step, err)
	}
	tok, err := v.tok.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	s.files = append(s.files, checkpoint.File{Name: "state.json", Write: bytesTo(state)},
		checkpoint.File{Name: "tokenizer.json", Write: bytesTo(tok)})
	return s, nil
}

// Tensor files of a checkpoint, without extension. If several ranks keep parts, each has its own files.
const (
	modelName   = "model"
	momentsName = "optimizer"
)

func (v *saver) fileName(base string) string {
	if v.keepers() == 1 {
		return base + ".safetensors"
	}
	return fmt.Sprintf("%s-rank-%05d.safetensors", base, v.opt.Ranks.Rank())
}

// keepers is the number of ranks that write tensors.
func (v *saver) keepers() int {
	switch {
	case v.opt.Ranks == nil:
		return 1
	case v.opt.Shard:
		return v.opt.ranks()
	}
	return v.opt.tensorRanks()
}

// tensors writes copies under their parameters' names with these prefixes: whole tensors, or slices with a note of
// their place.
func (v *saver) tensors(prefixes map[int]string) (func(io.Writer) error, error) {
	var list []safetensors.Entry
	slices := map[string]safetensors.Slice{}
	for what, prefix := range prefixes {
		for i, s := range v.keep {
			p := s.Param
			name, shape := prefix+p.Name, p.Shape()
			if rows, cols := p.Whole(); p.Split() || s.To-s.From < rows*cols {
				whole := safetensors.Slice{Of: name, Shape: shape, From: s.From, To: s.To}
				name, shape = fmt.Sprintf("%s@%d", name, s.From), []int{s.To - s.From}
				held, width := p.Held()
				for _, r := range held {
					whole.Rows = append(whole.Rows, [2]int{r.From, r.To})
				}
				for _, r := range width {
					whole.Cols = append(whole.Cols, [2]int{r.From, r.To})
				}
				slices[name] = whole
			}
			list = append(list, safetensors.FromFloat32s(name, "F32", shape, v.copies[what][i]))
		}
	}
	meta, err := safetensors.SliceMeta(slices)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return func(w io.Writer) error { return safetensors.Write(w, list, meta) }, nil
}

// write turns a snapshot into a checkpoint. It touches neither the device nor anything that training changes.
func (v *saver) write(s *snapshot) error {
	var err error
	switch {
	case v.keepers() > 1:
		err = v.writeTogether(s)
	case !v.opt.follows():
		err = v.store.Save(s.step, s.files)
	}
	switch {
	case err == nil, errors.Is(err, checkpoint.ErrCommitted):
		return err
	case errors.Is(err, checkpoint.ErrNoSpace) && !s.must && !v.recipe.Train.StrictSave:
		return fmt.Errorf("checkpoint of step %d %w: %w", s.step, errLater, err)
	}
	return fmt.Errorf("train: step %d: %w", s.step, err)
}

func bytesTo(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}
