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

// A cache may be coarser than what is written to it.
func TestCoarseCache(t *testing.T) {
	t.Setenv("ANTIPHASE_TEST_SHORT", "1")
	devicetest.RunAll(t, ref.NewTypes(device.Types{Act: tensor.F32, Stat: tensor.F32, Cache: tensor.BF16}))
}

func TestBF16(t *testing.T) {
	devicetest.RunAll(t, ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32}))
}

func TestThreads(t *testing.T) {
	devicetest.RunThreads(t, func(int) device.Device { return ref.New() })
}

func BenchmarkRef(b *testing.B) { devicetest.BenchAll(b, ref.New()) }

// The sampled oracle of long sequences agrees with the whole one at a length that both can do, in every set of dtypes.
func TestLong(t *testing.T) {
	for _, types := range []device.Types{{Act: tensor.F64, Stat: tensor.F64}, {Act: tensor.F32, Stat: tensor.F32},
		{Act: tensor.BF16, Stat: tensor.F32}} {
		devicetest.RunLong(t, ref.NewTypes(types), 200)
	}
}
