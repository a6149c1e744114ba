package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Kernels that the machine lacks are refused with a list of those it has, and only doctor opens the device regardless.
func TestForcedKernels(t *testing.T) {
	for _, name := range []string{"sse9", "AVX2", "neon9"} {
		t.Setenv("ANTIPHASE_SIMD", name)
		for _, args := range [][]string{{"generate", "-p", "x", "-n", "1"}, {"bench", "gemm"}, {"train", "--size", "nano"}} {
			if _, text := call(t, t.TempDir(), 2, args...); !strings.Contains(text, `ANTIPHASE_SIMD: there is no "`+name+`" here; there are `) ||
				!strings.Contains(text, "generic") {
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
