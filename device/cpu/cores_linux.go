package cpu

import (
	"bytes"
	"os"
	"path/filepath"
)

// mixedCores reports whether the machine has cores of different speeds: Linux states the capacity of each if they
// differ.
func mixedCores() bool {
	files, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/cpu_capacity")
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
