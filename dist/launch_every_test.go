package dist

import (
	"fmt"
	"strings"
	"testing"
)

// launcherVariables are what each launcher sets, and what is made of it. Each variable has a value of its own, so that
// no two can be exchanged.
var launcherVariables = []struct {
	env  string
	want Launch
}{
	{"ANTIPHASE_RANK=5 ANTIPHASE_WORLD_SIZE=9 ANTIPHASE_LOCAL_RANK=2 ANTIPHASE_LOCAL_SIZE=4 ANTIPHASE_NODE=3 " +
		"ANTIPHASE_JOB=j ANTIPHASE_MASTER=m:1",
		Launch{Source: "antiphase", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4, Node: 3, Job: "j",
			Master: "m:1"}},
	{"RANK=5 WORLD_SIZE=9 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4 GROUP_RANK=3 NODE_RANK=7 TORCHELASTIC_RESTART_COUNT=6 " +
		"TORCHELASTIC_RUN_ID=r MASTER_ADDR=a",
		Launch{Source: "torchrun", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4, Node: 3, Restart: 6, Job: "r",
			Master: "a:29500"}},
	{"RANK=5 WORLD_SIZE=9 NODE_RANK=7 MASTER_ADDR=a MASTER_PORT=1 ANTIPHASE_MASTER=m:1",
		Launch{Source: "torchrun", Rank: 5, World: 9, LocalRank: -1, Node: 7, Master: "m:1"}},
	{"RANK=5 WORLD_SIZE=9 MASTER_ADDR=::1 MASTER_PORT=65534",
		Launch{Source: "torchrun", Rank: 5, World: 9, LocalRank: -1, Node: -1, Master: "[::1]:65534",
			Job: "[::1]:65534"}},
	{"SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=9 SLURM_NTASKS=99 SLURM_LOCALID=2 SLURM_NODEID=1 SLURM_RESTART_COUNT=6 " +
		"SLURM_STEP_ID=4 SLURM_JOB_ID=5000 SLURM_NODELIST=old SLURM_STEP_NODELIST=n[3-4] " +
		"SLURM_STEP_TASKS_PER_NODE=4,5",
		Launch{Source: "slurm", Rank: 5, World: 9, LocalRank: 2, LocalSize: 5, Node: 1, Restart: 6, Job: "5000.4",
			Master: fmt.Sprintf("n3:%d", 61440+5004%4096)}},
	{"SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=9 SLURM_STEP_ID=4 SLURM_JOB_ID=7 SLURM_NODELIST=old",
		Launch{Source: "slurm", Rank: 5, World: 9, LocalRank: -1, Node: -1, Job: "7.4", Master: "old:61451"}},
	{"RANK=5 WORLD_SIZE=9 MASTER_PORT=7", Launch{Source: "torchrun", Rank: 5, World: 9, LocalRank: -1, Node: -1}},
	{"SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=9 SLURM_STEP_ID=4 SLURM_JOB_ID=7 SLURM_STEP_TASKS_PER_NODE=4,5",
		Launch{Source: "slurm", Rank: 5, World: 9, LocalRank: -1, LocalSize: 4, Node: -1, Job: "7.4"}},
	{"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=9 OMPI_COMM_WORLD_LOCAL_RANK=2 OMPI_COMM_WORLD_LOCAL_SIZE=4 " +
		"OMPI_MCA_ess_base_jobid=j", Launch{Source: "openmpi", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4,
		Node: -1, Job: "j"}},
	{"PMI_RANK=5 PMI_SIZE=9 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=4",
		Launch{Source: "mpich", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4, Node: -1}},
	{"MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=9 MV2_COMM_WORLD_LOCAL_RANK=2 MV2_COMM_WORLD_LOCAL_SIZE=4",
		Launch{Source: "mvapich2", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4, Node: -1}},
	{"JOB_COMPLETION_INDEX=5 ANTIPHASE_WORLD_SIZE=9 ANTIPHASE_LOCAL_RANK=2",
		Launch{Source: "kubernetes", Rank: 5, World: 9, LocalRank: 2, Node: -1}},
	{"PMI_RANK=0 PMI_SIZE=1", Launch{Source: "mpich", World: 1, LocalRank: -1, LocalSize: 1, Node: -1}},
}

// Every variable of every launcher goes where it belongs.
func TestVariablesOfLaunchers(t *testing.T) {
	for _, c := range launcherVariables {
		got, err := Detect(NoFlags(), env(strings.Fields(c.env)...))
		if err != nil || len(got.Seen) != 1 || len(got.Notes) != 0 {
			t.Errorf("%s: %+v, %v", c.env, got, err)
			continue
		}
		if got.Seen[0].Source != c.want.Source ||
			got.MPI() != strings.Contains("openmpi mpich mvapich2", c.want.Source) {
			t.Errorf("%s: seen %+v, MPI %v", c.env, got.Seen, got.MPI())
		}
		if got.Seen = nil; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
	}
}

// Flags state a rank and a world size, and nothing about a node or a restart; what they leave open others may state.
func TestFlagsAndLaunchers(t *testing.T) {
	flags := Explicit{Rank: 5, World: 9, LocalRank: 1}
	got, err := Detect(flags, env())
	if want := (Launch{Source: "flags", Rank: 5, World: 9, LocalRank: 1, Node: -1}); err != nil || len(got.Seen) != 1 ||
		!equal(got, want) || got.Restart != 0 || got.LocalSize != 0 {
		t.Errorf("flags: %+v, %v", got, err)
	}
	got, err = Detect(Explicit{Rank: 5, World: 9, LocalRank: -1}, env(strings.Fields(
		"RANK=5 WORLD_SIZE=9 LOCAL_RANK=2 LOCAL_WORLD_SIZE=4 GROUP_RANK=3 TORCHELASTIC_RESTART_COUNT=6 MASTER_ADDR=a "+
			"TORCHELASTIC_RUN_ID=r")...))
	if want := (Launch{Source: "flags", Rank: 5, World: 9, LocalRank: 2, LocalSize: 4, Node: 3, Restart: 6,
		Master: "a:29500", Job: "r"}); err != nil || len(got.Seen) != 2 || !equal(got, want) || got.Restart != 6 {
		t.Errorf("flags and torchrun: %+v, %v", got, err)
	}
}

// A local rank alone goes with the rank and the world size of a launcher, trusted alone or not.
func TestLocalRankFlag(t *testing.T) {
	for _, launcher := range []string{"", "mpich"} {
		for _, local := range []int{0, 3} {
			got, err := Detect(Explicit{Launcher: launcher, Rank: -1, World: -1, LocalRank: local},
				env("PMI_RANK=5", "PMI_SIZE=9", "MPI_LOCALNRANKS=4"))
			if want := (Launch{Source: "mpich", Rank: 5, World: 9, LocalRank: local, LocalSize: 4,
				Node: -1}); err != nil || !equal(got, want) {
				t.Errorf("--local-rank %d and mpich: %+v, %v", local, got, err)
			}
		}
	}
	for _, size := range []string{"", "1"} { // of one rank, it may be the command of several
		flags := Explicit{Rank: -1, World: -1, LocalRank: 3}
		if got, err := Detect(flags, env("PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALNRANKS="+size)); err != nil ||
			got.LocalRank != 3 {
			t.Errorf("--local-rank 3 of one rank: %+v, %v", got, err)
		}
	}
}

// Of two launchers that agree, each field is of the first that states it, though it be 0.
func TestLaunchersThatAgree(t *testing.T) {
	for local, second := range map[int]string{2: "OMPI_COMM_WORLD_LOCAL_RANK=2", 0: ""} {
		got, err := Detect(NoFlags(), env("RANK=5", "WORLD_SIZE=9", fmt.Sprint("LOCAL_RANK=", local), "GROUP_RANK=0",
			"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=9", second))
		if want := (Launch{Source: "torchrun", Rank: 5, World: 9, LocalRank: local, Node: 0}); err != nil ||
			len(got.Seen) != 2 || !equal(got, want) {
			t.Errorf("local rank %d: %+v, %v", local, got, err)
		}
	}
}

// A launch is local when all of its ranks are on one machine.
func TestLaunchLocal(t *testing.T) {
	for l, local := range map[*Launch]bool{{World: 1}: true, {World: 4, LocalSize: 4}: true,
		{World: 4, LocalSize: 2}: false, {World: 4}: false} {
		if l.Local() != local {
			t.Errorf("%+v is on one machine: %v", *l, !local)
		}
	}
}

func TestLaunchers(t *testing.T) {
	if got := strings.Join(Launchers(),
		" "); got != "auto none flags antiphase torchrun slurm openmpi mpich mvapich2 kubernetes" {
		t.Errorf("launchers %s", got)
	}
}

// A job of Slurm outside of a step is noted.
func TestSlurmWithoutStep(t *testing.T) {
	for _, half := range []string{"", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4"} { // both are those of a step
		l, err := Detect(NoFlags(), env("SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=5", half))
		if err != nil || l.World != 1 || len(l.Notes) != 1 ||
			!strings.Contains(l.Notes[0], "slurm job 5 is there, but this process was not started by srun") {
			t.Errorf("%s: %+v, %v", half, l, err)
		}
	}
}

// Variables of launchers other than the one that is trusted alone are noted and do not count.
func TestLauncherTrustedAlone(t *testing.T) {
	for _, broken := range []string{"OMPI_COMM_WORLD_RANK=x", "OMPI_COMM_WORLD_RANK=7", "RANK=0 WORLD_SIZE=0"} {
		vars := append(strings.Fields(broken), "PMI_RANK=1", "PMI_SIZE=4", "OMPI_COMM_WORLD_SIZE=4")
		if l, err := Detect(Explicit{Launcher: "mpich", Rank: -1, World: -1, LocalRank: -1},
			env(vars...)); err != nil || l.Rank != 1 || l.World != 4 {
			t.Errorf("%s: %+v, %v", broken, l, err)
		}
		for _, launcher := range []string{"auto", "torchrun", "openmpi"} {
			if l, err := Detect(Explicit{Launcher: launcher, Rank: -1, World: -1, LocalRank: -1},
				env(vars...)); err == nil {
				t.Errorf("%s, --launcher %s: %+v", broken, launcher, l)
			}
		}
	}
	mpich := env("PMI_RANK=1", "PMI_SIZE=4", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4")
	if l, err := Detect(Explicit{Launcher: "mpich", Rank: -1, World: -1, LocalRank: -1}, mpich); err != nil ||
		l.Rank != 1 || len(l.Seen) != 1 ||
		fmt.Sprint(l.Notes) != "[openmpi is there and not looked at, because mpich is to be trusted alone]" {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := Detect(Explicit{Launcher: "flags", Rank: 0, World: 2, LocalRank: -1}, mpich); err != nil ||
		l.Source != "flags" || l.World != 2 || len(l.Notes) != 2 {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := Detect(Explicit{Launcher: "auto", Rank: -1, World: -1, LocalRank: -1},
		env("PMI_RANK=1", "PMI_SIZE=4")); err != nil || l.Rank != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// Flags next to a launcher that is trusted alone are refused: they would have no effect.
func TestFlagsWithoutEffect(t *testing.T) {
	for _, name := range Launchers() {
		for _, given := range [][2]int{{1, 4}, {1, -1}, {-1, 4}} {
			l, err := Detect(Explicit{Launcher: name, Rank: given[0], World: given[1], LocalRank: -1},
				env("PMI_RANK=1", "PMI_SIZE=4"))
			idle := err != nil && strings.HasPrefix(err.Error(), "--rank and --world-size: have no effect")
			if idle != (name != "auto" && name != "flags") {
				t.Errorf("flags %v next to launcher %s: %+v, %v", given, name, l, err)
			}
		}
	}
}

// What is refused, by the words.
func TestLaunchWords(t *testing.T) {
	for want, x := range map[string]struct {
		flags Explicit
		env   string
	}{
		"launcher slurm is to be trusted alone, but it says nothing here": {Explicit{Launcher: "slurm", Rank: -1,
			World: -1}, ""},
		"a rank and a world size belong together": {Explicit{Rank: -1,
			World: 3}, ""},
		"a rank and a world size belong together: give both --rank and --world-size": {Explicit{Rank: 2,
			World: -1}, ""},
		"flags says rank 3 of 3: ranks count from 0 (--rank=3 --world-size=3)": {Explicit{Rank: 3,
			World: 3, LocalRank: -1}, ""},
		"mpich says local rank 4 of 4 (MPI_LOCALNRANKS=4 MPI_LOCALRANKID=4 PMI_RANK=1 PMI_SIZE=9)": {NoFlags(),
			"PMI_RANK=1 PMI_SIZE=9 MPI_LOCALRANKID=4 MPI_LOCALNRANKS=4"},
		"mpich says rank 1, but not of how many: set PMI_SIZE, or unset PMI_RANK": {NoFlags(),
			"PMI_RANK=1"},
		`torchrun: MASTER_PORT is "65535", must be a port`: {NoFlags(),
			"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=65535"},
		`torchrun: MASTER_PORT is "0", must be a port`: {NoFlags(),
			"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=0"},
		"--rank -1 --world-size 0: ranks count from 0, and there is at least one": {Explicit{Rank: -1,
			World: 0}, ""},
		"--local-rank 4: ranks of a machine count from 0, and the launcher says 4 on this one": {Explicit{Rank: -1,
			World: -1, LocalRank: 4}, "PMI_RANK=1 PMI_SIZE=9 MPI_LOCALNRANKS=4"},
		"--local-rank 1: the launcher says local rank 0; leave the flag out": {Explicit{Rank: -1,
			World: -1, LocalRank: 1}, "PMI_RANK=1 PMI_SIZE=9 MPI_LOCALRANKID=0"},
		"--local-rank -2: ranks of a machine count from 0": {Explicit{Rank: 1,
			World: 9, LocalRank: -2}, ""},
		"--rank -2 --world-size 2": {Explicit{Rank: -2,
			World: 2}, ""},
	} {
		if l, err := Detect(x.flags, env(strings.Fields(x.env)...)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v %s: %+v, %v; want %s", x.flags, x.env, l, err, want)
		}
	}
}
