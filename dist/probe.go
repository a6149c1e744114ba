package dist

import (
	"fmt"

	"antiphase/tensor"
)

// Probe sums a small tensor over all ranks of a host engine and checks the result.
func Probe(c Comm) error {
	x := tensor.Tensor{Buf: &tensor.Buffer{Host: make([]byte, 8), Size: 8}, Type: tensor.F64, Rows: 1, Cols: 1, Ld: 1}
	v := tensor.Host[float64](x)
	v[0] = float64(c.Rank() + 1)
	if err := c.AllReduce(x); err != nil {
		return err
	}
	if want := float64(c.Size()*(c.Size()+1)) / 2; v[0] != want {
		return fmt.Errorf("dist: the sum of 1 to %d came back as %v", c.Size(), v[0])
	}
	return nil
}
