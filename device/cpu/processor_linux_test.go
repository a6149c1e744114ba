package cpu

import "testing"

func TestModelIn(t *testing.T) {
	const v1, n1, unknown = "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n",
		"CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "CPU implementer\t: 0x61\nCPU part\t: 0x023\n"
	for info, want := range map[string]string{
		"": "",
		"processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\nflags\t\t: fpu\n": "Intel(R) Xeon(R) Processor",
		"processor\t: 0\n" + v1 + "\nprocessor\t: 1\n" + v1:                          "Neoverse V1",
		v1 + n1 + v1: "Neoverse V1 and Neoverse N1",
		unknown:      "0x61 0x023",
		"hart\t: 0\nisa\t: rv64imafdc\nuarch\t: sifive,u74-mc\n": "sifive,u74-mc",
	} {
		if got := modelIn(info); got != want {
			t.Errorf("%q names %q, want %q", info, got, want)
		}
	}
}
