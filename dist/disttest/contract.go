package disttest

import (
	"fmt"
	"math"

	"antiphase/dist"
	"antiphase/tensor"
)

// Floats is a host tensor of n float32 numbers.
func Floats(n int) tensor.Tensor { return host(tensor.F32, n) }

func host(t tensor.DType, n int) tensor.Tensor {
	b := make([]byte, max(n*t.Size(), 8))
	return tensor.Tensor{Buf: &tensor.Buffer{Host: b, Size: len(b)}, Type: t, Rows: 1, Cols: n, Ld: n}
}

// input is a rank's data before a collective: a function of rank and index, so that every rank knows what the others
// hold. Exponents are spread over 16 powers of two, so that another order of summation is detected.
func input(rank, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		h := (uint32(i) + 1) * 2654435761 * uint32(2*rank+1)
		h ^= h >> 15
		h *= 0x2c1b3c6d
		h ^= h >> 12
		x[i] = math.Float32frombits(h&0x807fffff | (120+h>>23&15)<<23)
	}
	return x
}

// total is Σ of all ranks' inputs, in rank order.
func total(size, n int) []float32 {
	t := input(0, n)
	for r := 1; r < size; r++ {
		for i, x := range input(r, n) {
			t[i] += x
		}
	}
	return t
}

// Check checks one rank of an engine against dist.Comm's contract, on host memory; all ranks call it. Lengths are odd,
// zero, and larger than any staging buffer.
func Check(c dist.Comm) error {
	if err := checkAll(c); err != nil {
		return err
	}
	// Adjacent pairs, and every second rank, including groups of one rank.
	for i, color := range []int{c.Rank() / 2, c.Rank() % 2} {
		g, err := c.Split(color)
		if err != nil {
			return fmt.Errorf("rank %d of %d: Split: %w", c.Rank(), c.Size(), err)
		}
		want := []int{c.Rank() % 2, c.Rank() / 2}[i]
		if g.Rank() != want {
			return fmt.Errorf("rank %d of %d: rank %d of its group, want %d", c.Rank(), c.Size(), g.Rank(), want)
		}
		if err := checkAll(g); err != nil {
			return fmt.Errorf("rank %d of %d, group %d: %w", c.Rank(), c.Size(), color, err)
		}
	}
	return c.Barrier()
}

func checkAll(c dist.Comm) error {
	for _, n := range []int{1, 3, 8, 1000, 4099, 1<<18 + 5} {
		for _, f := range []func(dist.Comm, int) error{checkAllReduce, checkReduceScatter, checkAllGather,
			checkBroadcast, checkDouble} {
			if err := f(c, n); err != nil {
				return fmt.Errorf("rank %d of %d, %d elements: %w", c.Rank(), c.Size(), n, err)
			}
		}
	}
	return c.Barrier()
}

// same compares sums: bit for bit if the engine guarantees an order, otherwise to rounding.
func same(c dist.Comm, got, want []float32) error {
	for i, w := range want {
		if c.Ordered() && got[i] != w || math.Abs(float64(got[i]-w)) > 1e-4*math.Max(1, math.Abs(float64(w))) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], w)
		}
	}
	return nil
}

func checkAllReduce(c dist.Comm, n int) error {
	x := Floats(n)
	copy(tensor.Host[float32](x), input(c.Rank(), n))
	if err := c.AllReduce(x); err != nil {
		return fmt.Errorf("AllReduce: %w", err)
	}
	if err := same(c, tensor.Host[float32](x), total(c.Size(), n)); err != nil {
		return fmt.Errorf("AllReduce: %w", err)
	}
	return nil
}

// checkReduceScatter leaves the result in the rank's own part of the input, as ZeRO does.
func checkReduceScatter(c dist.Comm, n int) error {
	whole := n * c.Size()
	x := Floats(whole)
	copy(tensor.Host[float32](x), input(c.Rank(), whole))
	part := x.Columns(c.Rank()*n, (c.Rank()+1)*n)
	if err := c.ReduceScatter(part, x); err != nil {
		return fmt.Errorf("ReduceScatter: %w", err)
	}
	if err := same(c, tensor.Host[float32](part), total(c.Size(), whole)[c.Rank()*n:][:n]); err != nil {
		return fmt.Errorf("ReduceScatter: %w", err)
	}
	return nil
}

// checkAllGather gathers bf16 in place, and from a separate buffer.
func checkAllGather(c dist.Comm, n int) error {
	for _, inPlace := range []bool{true, false} {
		out := host(tensor.BF16, n*c.Size())
		x := host(tensor.BF16, n)
		if inPlace {
			x = out.Columns(c.Rank()*n, (c.Rank()+1)*n)
		}
		for i := range n {
			tensor.Host[uint16](x)[i] = uint16(c.Rank()*31 + i)
		}
		if err := c.AllGather(out, x); err != nil {
			return fmt.Errorf("AllGather: %w", err)
		}
		for i, got := range tensor.Host[uint16](out) {
			if want := uint16(i/n*31 + i%n); got != want {
				return fmt.Errorf("AllGather: element %d is %d, want %d", i, got, want)
			}
		}
	}
	return nil
}

func checkBroadcast(c dist.Comm, n int) error {
	for root := range c.Size() {
		x := Floats(n)
		copy(tensor.Host[float32](x), input(c.Rank(), n))
		if err := c.Broadcast(x, root); err != nil {
			return fmt.Errorf("Broadcast: %w", err)
		}
		for i, want := range input(root, n) {
			if got := tensor.Host[float32](x)[i]; got != want {
				return fmt.Errorf("Broadcast of rank %d: element %d is %v, want %v", root, i, got, want)
			}
		}
	}
	return nil
}

// checkDouble sums float64 numbers that are exact.
func checkDouble(c dist.Comm, n int) error {
	x := host(tensor.F64, n)
	for i := range n {
		tensor.Host[float64](x)[i] = float64(i) + float64(c.Rank())/1024
	}
	if err := c.AllReduce(x); err != nil {
		return fmt.Errorf("AllReduce of F64: %w", err)
	}
	for i, got := range tensor.Host[float64](x) {
		s := float64(c.Size())
		if want := s*float64(i) + s*(s-1)/2/1024; got != want {
			return fmt.Errorf("AllReduce of F64: element %d is %v, want %v", i, got, want)
		}
	}
	return nil
}
