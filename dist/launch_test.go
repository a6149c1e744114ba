package dist

import (
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		m[k] = v
	}
	return func(k string) string { return m[k] }
}

// The variables are those that Debian's Open MPI 4.1.4, MPICH 4.0.2 and Slurm 22.05 set, and those that torchrun
// and an indexed Kubernetes job document.
func TestDetect(t *testing.T) {
	ompi := []string{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
		"OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_RANK=1", "PMIX_NAMESPACE=77"}
	mpich := []string{"PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=4", "PMI_FD=6"}
	srun := []string{"SLURM_PROCID=1", "SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0", "SLURM_JOB_ID=5",
		"SLURM_LOCALID=1", "SLURM_NODEID=0",
		"SLURM_STEP_NODELIST=gpu[07-08]", "SLURM_STEP_TASKS_PER_NODE=2(x2)"}
	torch := []string{"RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0",
		"MASTER_ADDR=a.example", "MASTER_PORT=29400"}
	for _, c := range []struct {
		name string
		env  []string
		want Launch
	}{
		{"nothing", nil, Launch{Source: "single", World: 1, LocalSize: 1}},
		{"openmpi", ompi, Launch{Source: "openmpi", Rank: 1, World: 4, LocalRank: 1, LocalSize: 4,
			Node: -1, Job: "77"}},
		{"mpich", mpich, Launch{Source: "mpich", Rank: 1, World: 4, LocalRank: 1, LocalSize: 4, Node: -1}},
		{"slurm", srun, Launch{Source: "slurm", Rank: 1, World: 4, LocalRank: 1, LocalSize: 2, Master: "gpu07:61445",
			Job: "5.0"}},
		{"torchrun", torch, Launch{Source: "torchrun", Rank: 1, World: 4, LocalRank: 1, LocalSize: 2,
			Master: "a.example:29400", Job: "a.example:29400"}},
		{"torchrun's agent holds the port", append(torch, "TORCHELASTIC_USE_AGENT_STORE=True"),
			Launch{Source: "torchrun", Rank: 1, World: 4, LocalRank: 1, LocalSize: 2, Master: "a.example:29401",
				Job: "a.example:29401"}},
		{"two that agree", append(srun, mpich[:2]...), Launch{Source: "slurm", Rank: 1, World: 4, LocalRank: 1,
			LocalSize: 2, Master: "gpu07:61445", Job: "5.0"}},
		{"ours first", append(ompi, "ANTIPHASE_RANK=1", "ANTIPHASE_WORLD_SIZE=4"), Launch{Source: "antiphase", Rank: 1,
			World: 4, LocalRank: 1, LocalSize: 4, Node: -1, Job: "77"}},
		{"kubernetes", []string{"JOB_COMPLETION_INDEX=2", "ANTIPHASE_WORLD_SIZE=3", "ANTIPHASE_MASTER=job-0.net:7000"},
			Launch{Source: "kubernetes", Rank: 2, World: 3, LocalRank: -1, Node: -1, Master: "job-0.net:7000"}},
		{"a batch script", []string{"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=5"}, Launch{Source: "single",
			World: 1, LocalSize: 1}},
	} {
		got, err := Detect(NoFlags(), env(c.env...))
		got.Seen, got.Notes = nil, nil
		if err != nil || !equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func equal(a, b Launch) bool {
	return a.Source == b.Source && a.Rank == b.Rank && a.World == b.World && a.LocalRank == b.LocalRank &&
		a.LocalSize == b.LocalSize && a.Node == b.Node && a.Master == b.Master && a.Job == b.Job
}

// Contradictions and halves are refused, and the message names the variables.
func TestDetectRefuses(t *testing.T) {
	for _, c := range []struct {
		env  string
		want string
	}{
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 PMI_RANK=1 PMI_SIZE=4",
			"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4"},
		{"RANK=0 WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4", "contradict"},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=1", "contradict"},
		{"RANK=0 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0", "contradict"},
		{"RANK=1 WORLD_SIZE=4 PMI_RANK=2 PMI_SIZE=3", "two launchers contradict each other: torchrun says rank 1 of " +
			"4 (RANK=1 WORLD_SIZE=4), mpich says rank 2 of 3 (PMI_RANK=2 PMI_SIZE=3); "},
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4",
			"--launcher"},
		{"RANK=0", "WORLD_SIZE"},
		{"RANK=x WORLD_SIZE=4", `RANK is "x"`},
		{"RANK=4 WORLD_SIZE=4", "rank 4 of 4"},
		{"RANK=-1 WORLD_SIZE=4", "RANK"},
		{"RANK=0 WORLD_SIZE=0", "world of 0"},
		{"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=4", "4 ranks on this machine"},
		{"JOB_COMPLETION_INDEX=0", "ANTIPHASE_WORLD_SIZE"},
		{"ANTIPHASE_WORLD_SIZE=4", "ANTIPHASE_RANK"},
		{"WORLD_SIZE=4", "set RANK"},
		{"OMPI_COMM_WORLD_SIZE=4 RANK=", "set OMPI_COMM_WORLD_RANK"},
		{"PMI_SIZE=2", "set PMI_RANK"},
		{"ANTIPHASE_RANK=0", "ANTIPHASE_WORLD_SIZE"},
		{"RANK=0 WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=no", "MASTER_PORT"},
	} {
		l, err := Detect(NoFlags(), env(strings.Fields(c.env)...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want an error with %q", c.env, l, err, c.want)
		}
	}
}

// Flags are a source like any other: they must not contradict either, and --launcher says whom to trust.
func TestDetectFlags(t *testing.T) {
	four := env("PMI_RANK=1", "PMI_SIZE=4", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4")
	flags := NoFlags()
	if _, err := Detect(flags, four); err == nil {
		t.Error("a contradiction passed")
	}
	flags.Launcher = "openmpi"
	if l, err := Detect(flags, four); err != nil || l.Rank != 3 || len(l.Notes) == 0 {
		t.Errorf("trusted Open MPI: %+v, %v", l, err)
	}
	flags.Launcher = "none"
	if l, err := Detect(flags, four); err != nil || l.World != 1 {
		t.Errorf("none: %+v, %v", l, err)
	}
	flags.Launcher = "slurm"
	if _, err := Detect(flags, four); err == nil {
		t.Error("Slurm says nothing here")
	}
	flags.Launcher = "smurl"
	if _, err := Detect(flags, four); err == nil || !strings.Contains(err.Error(), "slurm") {
		t.Errorf("an unknown launcher: %v", err)
	}
	single := NoFlags()
	single.Rank, single.World = 0, 1
	if _, err := Detect(single, env("PMI_RANK=1", "PMI_SIZE=4")); err == nil {
		t.Error("four silent copies")
	}
	for _, bad := range [][2]int{{-5, 2}, {-1, -3}, {-1, 0}, {0, -1}, {1, -1}} {
		flags := NoFlags()
		flags.Rank, flags.World = bad[0], bad[1]
		if l, err := Detect(flags, env()); err == nil {
			t.Errorf("--rank %d --world-size %d: %+v", bad[0], bad[1], l)
		}
	}
	half := NoFlags()
	half.Rank = 1
	if _, err := Detect(half, env()); err == nil {
		t.Error("a rank without a world size")
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"node1": "node1", "node1,node2": "node1", "gpu[007-012,020],login": "gpu007", "a[3]": "a3", "a[3,5-6]": "a3",
		"rack[1-2].dc[1-4]": "rack1.dc1", "x,y[1-2]": "x", "n[01-02]-ib": "n01-ib",
		"r[1,3]n[07,9-10]-ib,login[1-2]": "r1n07-ib",
		"a[3],b[4]":                      "a3", ",a": "", "a[": "a", "a[3": "a", "[5-6]": "5", "": "",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
	}
	for _, c := range []struct {
		list       string
		node, want int
	}{{"4(x2),3", 0, 4}, {"4(x2),3", 1, 4}, {"4(x2),3", 2, 3}, {"4(x2),3", 3, 0}, {"1", 0, 1}, {"", 0, 0}, {"a(x", 0,
		0}} {
		if got := tasksOnNode(c.list, c.node); got != c.want {
			t.Errorf("tasks of node %d in %q: %d, want %d", c.node, c.list, got, c.want)
		}
	}
}

func FuzzHostLists(f *testing.F) {
	f.Add("gpu[007-012,020],login", 3)
	f.Fuzz(func(t *testing.T, list string, node int) {
		firstHost(list)
		tasksOnNode(list, node)
	})
}
