package cpu

import (
	"bytes"
	"os"
	"path/filepath"
)

// mixedCores reports whether the machine has cores of different speeds.
func mixedCores() bool { return differIn("/sys/devices") }

// differIn reports it of the system's folder of devices.
func differIn(devices string) bool {
	return mixedIn(filepath.Join(devices, "system", "cpu")) || hybridIn(devices)
}

// hybridIn reports whether a folder of devices has counters of both kinds of Intel's cores, as laptops without AVX-512
// have had since 2021: Linux states no capacities there.
func hybridIn(dir string) bool {
	for _, kind := range []string{"cpu_core", "cpu_atom"} {
		if _, err := os.Stat(filepath.Join(dir, kind)); err != nil {
			return false
		}
	}
	return true
}

// mixedIn reports it of a folder of cores: Linux states the capacity of each if they differ.
func mixedIn(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "cpu[0-9]*", "cpu_capacity"))
	if err != nil {
		return false
	}
	var first []byte
	for _, f := range files {
		x, err := os.ReadFile(f)
		if err != nil {
			return false
		}
		if first == nil {
			first = x
		}
		if !bytes.Equal(x, first) {
			return true
		}
	}
	return false
}
