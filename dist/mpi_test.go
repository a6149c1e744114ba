package dist_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// launcher is an MPI launcher of this machine.
type launcher struct {
	name, program string
	args          []string
}

// mpiLaunchers finds those that are installed; the test is skipped if there is none.
func mpiLaunchers(t *testing.T) (out []launcher) {
	t.Helper()
	for _, l := range []launcher{
		{"openmpi", "mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "--mca",
			"btl_vader_single_copy_mechanism", "none"}},
		{"mpich", "mpirun.mpich", nil},
	} {
		if path, err := exec.LookPath(l.program); err == nil {
			l.program = path
			out = append(out, l)
		} else {
			t.Logf("%s is not installed (Debian: openmpi-bin, mpich): not tried", l.program)
		}
	}
	if len(out) == 0 {
		t.Skip("no MPI launcher is installed")
	}
	return out
}

// start runs the test binary as n ranks.
func (l launcher) start(t *testing.T, n int, child string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(l.program, append(append([]string{}, l.args...), "-np", fmt.Sprint(n), self)...)
	cmd.Env = append(append(os.Environ(), childEnv+"="+child), env...)
	return cmd
}

func (l launcher) run(t *testing.T, n int, child string, env ...string) (string, error) {
	t.Helper()
	out, err := l.start(t, n, child, env...).CombinedOutput()
	return string(out), err
}

// Every rank of a real mpirun sees its world, and collectives are right: in the order of ranks, and in the
// library's own.
func TestMPI(t *testing.T) {
	for _, l := range mpiLaunchers(t) {
		for _, env := range []string{"FAST=", "FAST=1"} {
			const n = 3
			out, err := l.run(t, n, "mpi", env)
			if err != nil {
				t.Errorf("%s %s: %v\n%s", l.name, env, err, out)
				continue
			}
			if got := strings.Count(out, ": right"); got != n || strings.Count(out, "from "+l.name) != n {
				t.Errorf("%s %s: %d ranks were right\n%s", l.name, env, got, out)
			}
			t.Log(strings.SplitN(out, "\n", 2)[0])
		}
	}
}

// Ranks that hold different data are refused, on every rank, with both values.
func TestMPIDifferentData(t *testing.T) {
	for _, l := range mpiLaunchers(t) {
		out, err := l.run(t, 2, "mpi", "DATA_OF_0=aaa", "DATA_OF_1=bbb")
		if err == nil || strings.Count(out, "has data=bbb") != 2 || !strings.Contains(out, "has data=aaa") {
			t.Errorf("%s: %v\n%s", l.name, err, out)
		}
	}
}

// The library of another launcher starts alone; that must not pass for a world.
func TestMPIOfAnotherFamily(t *testing.T) {
	all := mpiLaunchers(t)
	if len(all) < 2 {
		t.Skip("needs Open MPI and MPICH")
	}
	for i, other := range []string{"libmpich.so.12", "libmpi.so.40"} {
		out, err := all[i].run(t, 2, "mpi", "ANTIPHASE_MPI="+other)
		if err == nil || strings.Contains(out, ": right") {
			t.Errorf("%s with %s: %v\n%s", all[i].name, other, err, out)
		}
		t.Logf("%s with %s: %s", all[i].name, other, firstLine(out, "child mpi"))
	}
}

func firstLine(text, with string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			return strings.TrimSpace(line)
		}
	}
	return "(no line with " + with + ")"
}
