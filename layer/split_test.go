package layer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// team is a rank of n whose collectives fail from a given call on.
type team struct{ rank, size, calls, failAt int }

func (c *team) Rank() int { return c.rank }
func (c *team) Size() int { return c.size }
func (c *team) call() error {
	if c.calls++; c.calls == c.failAt {
		return errors.New("call " + fmt.Sprint(c.calls))
	}
	return nil
}
func (c *team) AllReduce(tensor.Tensor) error      { return c.call() }
func (c *team) AllGather(_, _ tensor.Tensor) error { return c.call() }

// Ranks divide rows and ids between them without overlap; the first error stays, and nothing is sent after it.
func TestSplitParts(t *testing.T) {
	if NewSplit(nil) != nil || NewSplit(&team{size: 1}) != nil {
		t.Error("a model of one rank is split")
	}
	var none *Split
	if none.Parts() != 1 || none.Part() != 0 || none.Err() != nil {
		t.Error("no split has other ranks")
	}
	none.Forget()
	const n = 12
	for _, size := range []int{2, 3, 4} {
		var ids [n]int
		at := 5
		for rank := range size {
			s := NewSplit(&team{rank: rank, size: size})
			if s.Parts() != size || s.Part() != rank {
				t.Fatalf("rank %d of %d", s.Part(), s.Parts())
			}
			r := s.run(5, n)
			if r.From != at || r.To-r.From != n/size {
				t.Errorf("rank %d of %d has %v", rank, size, r)
			}
			at = r.To
			for id := range int32(n) {
				local := s.Local(id, n, -7)
				if local == -7 {
					continue
				}
				if ids[id]++; local < 0 || int(local)+r.From-5 != int(id) {
					t.Errorf("rank %d of %d has id %d at %d", rank, size, id, local)
				}
			}
			if s.Local(-1, n, -7) != -1 || s.Local(-3, n, -7) != -3 {
				t.Error("a negative id is some rank's")
			}
		}
		if at != 5+n || slices.Max(ids[:]) != 1 || slices.Min(ids[:]) != 1 {
			t.Errorf("%d ranks: ids %v", size, ids)
		}
	}
	for fail := 1; fail <= 4; fail++ {
		c := &team{size: 2, failAt: fail}
		s := NewSplit(c)
		for range 2 {
			s.Sum(tensor.Tensor{})
			s.gather(tensor.Tensor{}, tensor.Tensor{})
		}
		if err := s.Err(); err == nil || err.Error() != fmt.Sprint("call ", fail) || c.calls != fail {
			t.Errorf("call %d failed: %v after %d calls", fail, err, c.calls)
		}
		if s.Forget(); s.Err() != nil {
			t.Error("the error is not forgotten")
		}
		if s.Sum(tensor.Tensor{}); c.calls != fail+1 {
			t.Error("nothing is sent after the error was forgotten")
		}
	}
}

// Which numbers of ranks divide the heads and their groups; others are refused with the list.
func TestCheckSplit(t *testing.T) {
	c := AttnConfig{Arch: &diffArch, Dim: 8, Heads: 12, Groups: 6, HeadDim: 4}
	for parts := 1; parts <= 13; parts++ {
		err := c.CheckSplit(parts)
		if good := 6%parts == 0; (err == nil) != good {
			t.Errorf("%d ranks: %v", parts, err)
		}
		if err != nil && !strings.Contains(err.Error(), "[1 2 3 6]") {
			t.Errorf("%d ranks: %v", parts, err)
		}
	}
	c.Pairing = PairingAcross
	if c.CheckSplit(1) != nil || c.CheckSplit(2) == nil {
		t.Error("pairs of two groups can be split")
	}
	for want, n := range map[string][]int{"[1 2 3 6]": {12, 18}, "[1 2 4]": {4, 8}, "[1 5]": {5, 5}, "[1]": {1, 4},
		"[1 2]": {6, 4}} {
		if got := fmt.Sprint(divisors(n...)); got != want {
			t.Errorf("divisors of %v: %s, want %s", n, got, want)
		}
	}
	for want, a := range map[string]*Arch{"tp=3 does not divide heads = 4; tp may be [1 2 4]": &plainArch,
		"tp=3 does not divide heads (pairs, whose two maps stay on one rank) = 4; tp may be [1 2 4]": &diffArch} {
		c := AttnConfig{Arch: a, Dim: 8, Heads: 4, Groups: 4, HeadDim: 4}
		if err := c.CheckSplit(3); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// pair is a team of two whose other rank has the same share.
type pair struct{ d device.Device }

func (pair) Rank() int { return 0 }
func (pair) Size() int { return 2 }
func (p pair) AllReduce(x tensor.Tensor) error {
	if !x.Dense() || x.Type != p.d.Types().Stat { // what no team could send
		return fmt.Errorf("a sum over %v", x)
	}
	v := readAll(p.d, x)
	for i := range v {
		v[i] *= 2
	}
	device.WriteFloats(p.d, x, v)
	return nil
}
func (pair) AllGather(_, _ tensor.Tensor) error { return nil }

// keeper is a device that notes which of its memory others wrote.
type keeper struct {
	device.Device
	wrote []tensor.Tensor
}

func (k *keeper) Wrote(t tensor.Tensor) { k.wrote = append(k.wrote, t) }

// A tensor of which each rank has a share becomes the sum, in whatever dtype and pitch it is; without a split it stays.
func TestSharesAreSummed(t *testing.T) {
	d := ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})
	p := &Pass{Dev: d, Arena: tensor.NewArena(d)}
	want := []float64{1, 2, 3, 4, 5, 6}
	for name, y := range map[string]tensor.Tensor{"activation": device.Empty(d, tensor.BF16, 2, 3),
		"statistic": device.Empty(d, tensor.F32, 2, 3), "view": device.Empty(d, tensor.F32, 2, 5).Columns(1, 4)} {
		for _, s := range []*Split{nil, NewSplit(pair{d})} {
			device.WriteFloats(d, y, want)
			s.add(p, y)
			got := readAll(d, y)
			device.WriteFloats(d, y, want)
			share := s.begin(p, y)
			if share != y {
				d.Copy(share, y)
			}
			s.end(p, y, share)
			if err := s.Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			again := readAll(d, y)
			for i, x := range want {
				if s != nil {
					x *= 2
				}
				if got[i] != x || again[i] != x {
					t.Errorf("%s, split %v: %v and %v of %v", name, s != nil, got, again, want)
				}
			}
		}
	}
	k := &keeper{Device: d}
	p.Dev = k
	y := device.Empty(d, tensor.F32, 2, 3)
	if NewSplit(pair{d}).add(p, y); !slices.Equal(k.wrote, []tensor.Tensor{y}) {
		t.Errorf("a device that keeps what it derives from memory was told of %v, want %v", k.wrote, y)
	}
	if p.Arena.Used() > 3*2*256 {
		t.Errorf("%d bytes are left on the stack", p.Arena.Used())
	}
}
