package devicetest_test

import (
	"testing"

	"antiphase/device"
	"antiphase/device/devicetest"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// The oracle in each set of dtypes that devices use: the tolerances leave room for at least a perfect one.
func TestRef(t *testing.T) { devicetest.RunAll(t, ref.New()) }

func TestF32(t *testing.T) {
	devicetest.RunAll(t, ref.NewTypes(device.Types{Act: tensor.F32, Stat: tensor.F32}))
}

func TestBF16(t *testing.T) {
	devicetest.RunAll(t, ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32}))
}

func TestThreads(t *testing.T) {
	devicetest.RunThreads(t, func(int) device.Device { return ref.New() })
}

func BenchmarkRef(b *testing.B) { devicetest.BenchAll(b, ref.New()) }
