package train

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"time"

	"antiphase/device"
	"antiphase/internal/vfs"
	"antiphase/tensor"
)

// homeEnv names the folder for data about the machine; by default it is in the user's cache folder.
const homeEnv = "ANTIPHASE_HOME"

// MachinePeak is the device's rate on a bare matrix product, the reference for MFU and time estimates. It is measured
// once and stored per machine by model, threads, precision and kernels, so that a run and its resume share one
// reference.
func MachinePeak(d device.Device) float64 {
	if x := readPeaks()[peakKey(d)]; x > 0 {
		return x
	}
	return MeasurePeak(d)
}

// MeasurePeak measures the rate again, while nothing else should run, and stores it if it is higher.
func MeasurePeak(d device.Device) float64 {
	x := peak(d, time.Now)
	all := readPeaks()
	if key := peakKey(d); x > all[key] {
		all[key] = x
		writePeaks(all)
	}
	return x
}

func peakKey(d device.Device) string { return device.MachineOf(d) + "; " + d.Name() }

func peakFile() string {
	if dir := os.Getenv(homeEnv); dir != "" {
		return filepath.Join(dir, "peak.json")
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "antiphase", "peak.json")
}

// readPeaks returns the stored rates, none if the file is missing or damaged: they are then measured again.
func readPeaks() map[string]float64 {
	all := map[string]float64{}
	b, err := vfs.ReadFile(vfs.OS{}, peakFile(), maxState)
	if err != nil || json.Unmarshal(b, &all) != nil || all == nil {
		return map[string]float64{}
	}
	return all
}

// writePeaks stores them if it can; otherwise every start measures.
func writePeaks(all map[string]float64) {
	path := peakFile()
	b, err := json.MarshalIndent(all, "", "  ")
	if path == "" || err != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	_ = vfs.WriteFile(vfs.OS{}, path, append(b, '\n'))
}

// peak is the rate on a square product that takes at least a millisecond.
func peak(d device.Device, now func() time.Time) float64 {
	for n := 512; ; n *= 2 {
		if best := product(d, n, now); best > 1e-3 || n == 8192 {
			return 2 * float64(n) * float64(n) * float64(n) / best
		}
	}
}

// product is the shortest time in seconds of an n³ product. It is repeated until nine more are less than 2 % faster,
// for at most half a second, because another process may occupy the machine for some of them.
func product(d device.Device, n int, now func() time.Time) float64 {
	a, b, c := device.EmptyAct(d, n, n), device.Empty(d, d.Types().Act, n, n), device.EmptyAct(d, n, n)
	defer func() { d.Free(a.Buf); d.Free(b.Buf); d.Free(c.Buf) }()
	best, since := math.Inf(1), 0
	var one [1]float32
	for begin := now(); since < 10 && now().Sub(begin) < time.Second/2; since++ {
		t := now()
		d.MatMul(c, a, b, device.MatMul{TransB: true})
		device.ReadFloats(d, one[:], tensor.Tensor(c.RowRange(0, 1).Columns(0, 1)))
		took := now().Sub(t).Seconds()
		if took < 0.98*best {
			since = 0
		}
		best = min(best, took)
	}
	return best
}
