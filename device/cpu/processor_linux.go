package cpu

import (
	"os"
	"slices"
	"strings"
)

// processor is the processor's model as the system names it; empty if it does not.
func processor() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return modelIn(string(b))
}

// armParts names cores of ARM servers and boards by the implementer and part that Linux lists instead of a name.
var armParts = map[string]string{
	"0x41 0xd03": "Cortex-A53", "0x41 0xd05": "Cortex-A55", "0x41 0xd08": "Cortex-A72", "0x41 0xd0b": "Cortex-A76",
	"0x41 0xd0c": "Neoverse N1", "0x41 0xd40": "Neoverse V1", "0x41 0xd49": "Neoverse N2", "0x41 0xd4f": "Neoverse V2",
	"0xc0 0xac3": "Ampere-1",
}

// modelIn is the model that the text of /proc/cpuinfo names: "model name" on amd64, the kinds of cores on ARM, "uarch"
// on RISC-V.
func modelIn(info string) string {
	var kinds []string
	var implementer, uarch string
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			return value
		case "uarch":
			uarch = value
		case "CPU implementer":
			implementer = value
		case "CPU part":
			kind := implementer + " " + value
			if name, ok := armParts[kind]; ok {
				kind = name
			}
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	if len(kinds) == 0 {
		return uarch
	}
	return strings.Join(kinds, " and ")
}
