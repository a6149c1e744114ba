package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Kernels that the machine lacks are refused with a list of those it has, and only doctor opens the device regardless.
func TestForcedKernels(t *testing.T) {
	for _, name := range []string{"sse9", "AVX2", "neon9"} {
		t.Setenv("ANTIPHASE_SIMD", name)
		for _, args := range [][]string{{"generate", "-p", "x", "-n", "1"}, {"bench", "gemm"},
			{"train", "--size", "nano"}} {
			if _, text := call(t, t.TempDir(), 2, args...); !strings.Contains(text,
				`ANTIPHASE_SIMD: there is no "`+name+`" here; there are `) || !strings.Contains(text, "generic") {
				t.Errorf("%v with %s says %s", args, name, text)
			}
		}
		if said := doctorFacts(t)["instructions"]; !strings.Contains(said, "(no "+name+" here)") {
			t.Errorf("doctor with %s says %q", name, said)
		}
	}
}

// doctorFacts are those of the CPU.
func doctorFacts(t *testing.T) map[string]string {
	t.Helper()
	out, _ := call(t, t.TempDir(), 0, "doctor", "--json", "--device", "cpu")
	var lists map[string][]string
	if err := json.Unmarshal([]byte(out), &lists); err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for key, list := range lists {
		facts[key] = strings.Join(list, "; ")
	}
	return facts
}

// Whichever kernels are forced, doctor names them, the loop that bounds them and a rate above 0.
func TestDoctorPeak(t *testing.T) {
	for _, name := range strings.Fields(strings.NewReplacer("(", "", ")", "", ";",
		" ;").Replace(doctorFacts(t)["instructions"])) {
		if name == ";" {
			break
		}
		t.Setenv("ANTIPHASE_SIMD", name)
		facts := doctorFacts(t)
		if !strings.Contains(facts["device"], ", "+name+", ") || !strings.HasPrefix(facts["instructions"], name+" ") {
			t.Errorf("%s: %v", name, facts)
		}
		for _, key := range []string{"peak", "matrix product"} {
			var rate float64
			if n, err := fmt.Sscanf(facts[key], "%g GFLOP/s (", &rate); n != 1 || err != nil || rate <= 0 {
				t.Errorf("%s: %s is %q", name, key, facts[key])
			}
		}
	}
}

func TestRateText(t *testing.T) {
	for x, want := range map[float64]string{0: "0.000", 4e6: "0.004", 0.5e9: "0.500", 3.14159e9: "3.14",
		73.26e9: "73.3", 1827e9: "1827", 1e9: "1.00", 10e9: "10.0", 99.96e9: "100.0", 100e9: "100", 0.1e9: "0.100"} {
		if got := rateText(x); got != want+" GFLOP/s" {
			t.Errorf("%g is %q", x, got)
		}
	}
}
