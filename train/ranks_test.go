package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// member is a rank of an in-process world that can agree on facts.
type member struct {
	dist.Comm
	table *facts
}

type facts struct {
	mu     sync.Mutex
	said   map[string][]string
	values map[string]map[int][]byte
	more   *sync.Cond
	size   int
	lost   bool
}

// newFacts is the table of a world.
func newFacts(size int) *facts {
	f := &facts{said: map[string][]string{}, values: map[string]map[int][]byte{}, size: size}
	f.more = sync.NewCond(&f.mu)
	return f
}

// lose ends everyone's waiting, as a job's store does when a rank is gone.
func (f *facts) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = true
	f.more.Broadcast()
}

func (m member) Group(color int) (optim.Ranks, error) { return m.Comm.Split(color) }

// Exchange needs no collective, as a job's does not: any goroutine may call it.
func (m member) Exchange(tag string, value []byte) ([][]byte, error) {
	f := m.table
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values[tag] == nil {
		f.values[tag] = map[int][]byte{}
	}
	f.values[tag][m.Rank()] = value
	f.more.Broadcast()
	for len(f.values[tag]) < f.size && !f.lost {
		f.more.Wait()
	}
	if f.lost {
		return nil, dist.ErrPeer
	}
	out := make([][]byte, f.size)
	for r, v := range f.values[tag] {
		out[r] = v
	}
	return out, nil
}

func (m member) Agree(tag string, f map[string]string) error {
	m.table.mu.Lock()
	m.table.said[tag] = append(m.table.said[tag], fmt.Sprint(f))
	m.table.mu.Unlock()
	if err := m.Barrier(); err != nil {
		return err
	}
	m.table.mu.Lock()
	defer m.table.mu.Unlock()
	for _, s := range m.table.said[tag] {
		if s != m.table.said[tag][0] {
			return fmt.Errorf("%w: %s", dist.ErrDiffer, tag)
		}
	}
	return nil
}

// runRanks trains r as n ranks in dir and gives rank 0's rows; change may alter a rank's options and recipe.
func runRanks(t testing.TB, r recipe.Recipe, dir string, n int, shard bool, change func(rank int, opt *Options,
	r *recipe.Recipe)) ([]Row, error) {
	t.Helper()
	table := newFacts(n)
	var rows []Row
	err := disttest.NewWorld(n, disttest.Options{}).Run(func(c dist.Comm) error {
		d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
		defer d.Close()
		opt := Options{Dir: dir, Device: d, Ranks: member{c, table}, Shard: shard}
		if c.Rank() == 0 {
			opt.Report = func(row Row) { rows = append(rows, row) }
		}
		r := r
		if change != nil {
			change(c.Rank(), &opt, &r)
		}
		_, err := Run(context.Background(), r, opt)
		if err != nil {
			table.lose()
		}
		return err
	})
	return rows, err
}

func single(t testing.TB, r recipe.Recipe, dir string) (rows []Row) {
	t.Helper()
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	mustRun(t, r, Options{Dir: dir, Device: d, Report: func(row Row) { rows = append(rows, row) }})
	return rows
}

// The losses of fifty steps do not depend on the number of ranks, on who holds the moments, or on accumulation.
func TestRanksEqualOne(t *testing.T) {
	for _, a := range layer.Archs() {
		steps := 8
		if a.Name == "diff" && !testing.Short() {
			steps = 50 // differences add up in one of them as in the others
		}
		base := []string{"train.batch=12", "train.seq_len=8", fmt.Sprint("train.steps=", steps), "train.save_every=0"}
		want := single(t, nano(t, a.Name, append(base, "train.micro_batch=12")...), t.TempDir())
		for _, n := range []int{1, 2, 3, 4} {
			for _, shard := range []bool{false, true} {
				for _, micro := range []int{12 / n, 1} {
					name := fmt.Sprintf("%s, %d ranks, sharded %v, micro-batch %d", a.Name, n, shard, micro)
					got, err := runRanks(t, nano(t, a.Name, append(base, fmt.Sprint("train.micro_batch=", micro))...),
						t.TempDir(), n, shard, nil)
					if err != nil || len(got) != steps {
						t.Fatalf("%s: %d rows, %v", name, len(got), err)
					}
					worst := 0.0
					for i := range got {
						worst = math.Max(worst, math.Abs(got[i].Loss-want[i].Loss))
						if !(math.Abs(got[i].GradNorm/want[i].GradNorm-1) <= 1e-3) {
							t.Fatalf("%s, step %d: norm %g, one rank's %g", name, i+1, got[i].GradNorm,
								want[i].GradNorm)
						}
					}
					if !(worst <= 1e-5*want[0].Loss) {
						t.Errorf("%s: losses differ by up to %g", name, worst)
					}
				}
			}
		}
	}
}

// Where each rank has one micro-batch, the weights are bit-identical to those of one process that adds up whole
// micro-batch gradients in the order of ranks.
func TestRanksToTheBit(t *testing.T) {
	for _, a := range layer.Archs() {
		for _, n := range []int{2, 3, 4} {
			r := nano(t, a.Name, "train.batch=12", fmt.Sprint("train.micro_batch=", 12/n), "train.steps=5",
				"train.save_every=0")
			dir := t.TempDir()
			if _, err := runRanks(t, r, dir, n, false, nil); err != nil {
				t.Fatal(err)
			}
			got := files(t, filepath.Join(dir, "checkpoints", "step-00000005"))["model.safetensors"]
			if !bytes.Equal(got, inOrder(t, r, dir, n)) {
				t.Errorf("%s, %d ranks: the weights differ", a.Name, n)
			}
		}
	}
}

// inOrder trains r on the token set in dir with gradients of n parts of each batch that are added by plain loops on
// the host.
func inOrder(t *testing.T, r recipe.Recipe, dir string, n int) []byte {
	t.Helper()
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	m, err := model.New(d, r.Model, layer.Memory{Train: true, DecayEmbeddings: r.Optim.DecayEmb})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	m.Init(r.Train.Seed)
	o := optim.New(d, m.Params, r.Optim)
	defer o.Free()
	set, err := data.OpenSet(filepath.Join(dir, "data"), true)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	split, err := set.Split(data.Train)
	if err != nil {
		t.Fatal(err)
	}
	B, T := r.Train.Batch, r.Train.SeqLen
	rows := loader(split, r, B, r.Train.Seed)
	ids, targets, starts := make([]int32, B*T), make([]int32, B*T), make([]int32, B*T)
	var feed model.Feed
	defer feed.Free()
	for step := range r.Train.Steps {
		rows.Next(ids, targets, starts)
		b := model.Batch{B: B, T: T, IDs: ids, Targets: targets}
		if r.Data.Isolate {
			b.Starts = starts
		}
		count := 0
		for _, id := range targets {
			if id >= 0 {
				count++
			}
		}
		sums := sumOfParts(t, m, &feed, b, n, 1/float64(count))
		for i, g := range m.Params.Groups {
			device.WriteFloats(d, g.G, sums[i])
		}
		o.SetRate(step+1, r.Optim.Rate(step, r.Train.Steps))
		o.Step()
	}
	var out bytes.Buffer
	if err := m.Save(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sumOfParts adds up the gradients of n parts of b, in order, for every group of parameters.
func sumOfParts(t *testing.T, m *model.Model, feed *model.Feed, b model.Batch, n int, scale float64) [][]float32 {
	t.Helper()
	sums := make([][]float32, len(m.Params.Groups))
	for part := range n {
		from, to := part*b.B/n*b.T, (part+1)*b.B/n*b.T
		piece := model.Batch{B: b.B / n, T: b.T, IDs: b.IDs[from:to], Targets: b.Targets[from:to]}
		if b.Starts != nil {
			piece.Starts = b.Starts[from:to]
		}
		if err := m.Put(feed, &piece, piece.B); err != nil {
			t.Fatal(err)
		}
		m.Gradient(feed, scale, nil)
		for i, g := range m.Params.Groups {
			x := make([]float32, g.G.Cols)
			device.ReadFloats(m.Device(), x, g.G)
			if sums[i] == nil {
				sums[i] = x
				continue
			}
			for k := range x {
				sums[i][k] += x[k]
			}
		}
	}
	return sums
}

// One rank that is asked to stop stops all of them after the same step, with everything saved.
func TestRanksStopTogether(t *testing.T) {
	for victim := range 3 {
		for _, shard := range []bool{false, true} {
			dir := t.TempDir()
			r := nano(t, "diff", "train.batch=12", "train.micro_batch=2", "train.steps=9", "train.save_every=0")
			table := newFacts(3)
			world := disttest.NewWorld(3, disttest.Options{})
			stopped := make([]int, 3)
			err := world.Run(func(c dist.Comm) error {
				d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
				defer d.Close()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				opt := Options{Dir: dir, Device: d,
					Ranks: &canceller{member: member{c, table}, at: 4, victim: c.Rank() == victim, cancel: cancel},
					Shard: shard}
				res, err := Run(ctx, r, opt)
				stopped[c.Rank()] = res.Steps
				if !errors.Is(err, ErrInterrupted) {
					return fmt.Errorf("rank %d: %w", c.Rank(), err)
				}
				return nil
			})
			if err != nil || stopped[0] == 0 || stopped[0] == 9 || stopped[1] != stopped[0] ||
				stopped[2] != stopped[0] {
				t.Fatalf("rank %d asked: stopped after steps %v, %v", victim, stopped, err)
			}
			rows, err := runRanks(t, r, dir, 2, !shard, nil)
			if err != nil || rows[0].Step != stopped[0]+1 || rows[len(rows)-1].Step != 9 {
				t.Errorf("went on with %v, %v", rows, err)
			}
		}
	}
}

// canceller is a rank that is asked to stop at one of its collectives.
type canceller struct {
	member
	at     int
	victim bool
	cancel func()
}

func (c *canceller) AllGather(out, x tensor.Tensor) error {
	if c.at--; c.at == 0 && c.victim {
		c.cancel()
	}
	return c.member.AllGather(out, x)
}

// A loss that is not finite ends all ranks alike, and the first of them writes the batch.
func TestRanksNotFinite(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.batch=4", "train.micro_batch=2", "train.steps=9", "optim.lr=100", "optim.clip=0",
		"optim.warmup=0")
	r.Optim.LR = 1e30
	_, err := runRanks(t, r, dir, 2, false, func(rank int, opt *Options, _ *recipe.Recipe) {
		opt.fs = &vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
			if rank > 0 && strings.Contains(op.Path, "crash-step-") {
				t.Errorf("rank %d: %s %s", rank, op.Kind, op.Path)
			}
			return nil
		}}
	})
	if !errors.Is(err, ErrNotFinite) || strings.Count(err.Error(), ErrNotFinite.Error()) != 2 {
		t.Errorf("got %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "crash-step-*", "batch.json")); len(found) != 1 {
		t.Errorf("crash files %v", found)
	}
}

// Ranks with another recipe, or a batch that cannot be shared, are refused before a step is taken.
func TestRanksRefuse(t *testing.T) {
	r := nano(t, "diff", "train.batch=4", "train.steps=3")
	rows, err := runRanks(t, r, t.TempDir(), 2, false, func(rank int, _ *Options, r *recipe.Recipe) {
		r.Optim.LR *= float64(1 + rank)
	})
	if !errors.Is(err, dist.ErrDiffer) || len(rows) > 0 {
		t.Errorf("another recipe: %d rows, %v", len(rows), err)
	}
	rows, err = runRanks(t, r, t.TempDir(), 3, false, nil)
	if err == nil || !strings.Contains(err.Error(), "train.batch=4") || len(rows) > 0 {
		t.Errorf("three ranks of four rows: %d rows, %v", len(rows), err)
	}
}

// Ranks that follow take the token set that a recipe names, as rank 0 does, with a tokenizer by name or the set's own:
// at the beginning and after a stop.
func TestRanksTakeBuiltSet(t *testing.T) {
	made := nano(t, "diff")
	set := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(context.Background(), made, set, tokenizer.Bytes(), &Options{}); err != nil {
		t.Fatal(err)
	}
	sets := []string{"data.sources=" + set, "train.batch=4", "train.save_every=0", "optim.schedule=constant"}
	for _, tok := range [][]string{{"tokenizer.path=bytes"}, {"tokenizer.path=", "tokenizer.vocab=257"}} {
		one, two := t.TempDir(), t.TempDir()
		for _, steps := range []string{"train.steps=3", "train.steps=5"} {
			r := nano(t, "diff", slices.Concat(sets, tok, []string{steps})...)
			want := single(t, r, one)
			got, err := runRanks(t, r, two, 2, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			sameCurve(t, tok[0]+" "+steps, got, want, true, true)
		}
	}
}
