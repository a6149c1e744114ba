package devicetest

import (
	"fmt"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// BytesMustFit wants Write and Read to refuse bytes of another length than the tensor's, and absent tensors, by a panic
// that begins with the device's name.
func BytesMustFit(t *testing.T, d device.Device, name string) {
	t.Helper()
	x := device.Empty(d, d.Types().Stat, 2, 3)
	n := x.Len() * x.Type.Size()
	for what, f := range map[string]func(){
		"write of less":    func() { d.Write(x, make([]byte, n-1)) },
		"read of more":     func() { d.Read(make([]byte, n+1), x) },
		"write of more":    func() { d.Write(x, make([]byte, n+1)) },
		"read of less":     func() { d.Read(make([]byte, n-4), x) },
		"write of nothing": func() { d.Write(tensor.Tensor{}, nil) },
		"read of nothing":  func() { d.Read(nil, tensor.Tensor{}) },
	} {
		func() {
			defer func() {
				if s := fmt.Sprint(recover()); !strings.HasPrefix(s, name+": "+what[:4]) {
					t.Errorf("%s: %s", what, s)
				}
			}()
			f()
		}()
	}
	d.Free(x.Buf)
}
