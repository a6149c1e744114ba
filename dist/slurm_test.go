package dist_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A real Slurm on loopback: srun's ranks meet without MPI, MPICH's collectives are right under it, and a batch
// script that does not use srun is one process.
func TestSlurm(t *testing.T) {
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "job")
	text := "#!/bin/sh\n#SBATCH -n 3 -O\n" + childEnv + "=meet " + self + "\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	steps := []string{
		childEnv + "=meet srun -n 3 -O " + self,
		"sbatch -W -o " + script + ".out " + script + " >&2; cat " + script + ".out",
	}
	want := map[string]int{"of 3 from slurm: met 3": 3, "one process, single": 1}
	if _, err := exec.LookPath("mpirun.mpich"); err == nil {
		steps = append(steps, childEnv+"=mpi srun -n 3 -O --mpi=pmi2 "+self)
		want["of 3 from slurm by MPICH"] = 3
	}
	cmd := exec.Command("../tools/cluster/slurm.sh", "bash", "-ec", strings.Join(steps, "\n"))
	var said, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &complaints
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 || errors.Is(err, exec.ErrNotFound) || errors.Is(err,
		os.ErrNotExist) {
		t.Skip(strings.TrimSpace(complaints.String()))
	}
	out := said.String()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, complaints.String())
	}
	for text, times := range want {
		if got := strings.Count(out, text); got != times {
			t.Errorf("%q is there %d times, want %d\n%s%s", text, got, times, out, complaints.String())
		}
	}
}
