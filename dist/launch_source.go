package dist

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// source reads one launcher's variables. Of a list, the first that is set counts. A launcher is present if its rank
// variable is set.
type source struct {
	name                   string
	rank, world            []string
	local, localSize, node []string
	restart                []string
	job                    []string
	// further condition besides the rank's variable: false with a note
	there        func(getenv func(string) string) (bool, string)
	more         func(f *Finding, getenv func(string) string) error
	missingWorld string // advice if the world size is missing
}

// sources in order of precedence.
var sources = []source{
	{
		name: "antiphase", rank: []string{"ANTIPHASE_RANK"}, world: []string{"ANTIPHASE_WORLD_SIZE"},
		local:     []string{"ANTIPHASE_LOCAL_RANK"},
		localSize: []string{"ANTIPHASE_LOCAL_SIZE"}, node: []string{"ANTIPHASE_NODE"}, job: []string{"ANTIPHASE_JOB"},
	},
	{
		name: "torchrun", rank: []string{"RANK"}, world: []string{"WORLD_SIZE"}, local: []string{"LOCAL_RANK"},
		localSize: []string{"LOCAL_WORLD_SIZE"}, node: []string{"GROUP_RANK", "NODE_RANK"},
		restart: []string{"TORCHELASTIC_RESTART_COUNT"},
		job:     []string{"TORCHELASTIC_RUN_ID"}, more: torchrunMaster,
	},
	{
		name: "slurm", rank: []string{"SLURM_PROCID"}, world: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		local: []string{"SLURM_LOCALID"},
		node:  []string{"SLURM_NODEID"}, restart: []string{"SLURM_RESTART_COUNT"}, there: slurmStep, more: slurmMaster,
	},
	{
		name: "openmpi", rank: []string{"OMPI_COMM_WORLD_RANK"}, world: []string{"OMPI_COMM_WORLD_SIZE"},
		local:     []string{"OMPI_COMM_WORLD_LOCAL_RANK"},
		localSize: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"}, job: []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
	},
	{
		name: "mpich", rank: []string{"PMI_RANK"}, world: []string{"PMI_SIZE"}, local: []string{"MPI_LOCALRANKID"},
		localSize: []string{"MPI_LOCALNRANKS"},
	},
	{
		name: "mvapich2", rank: []string{"MV2_COMM_WORLD_RANK"}, world: []string{"MV2_COMM_WORLD_SIZE"},
		local:     []string{"MV2_COMM_WORLD_LOCAL_RANK"},
		localSize: []string{"MV2_COMM_WORLD_LOCAL_SIZE"},
	},
	{
		name: "kubernetes", rank: []string{"JOB_COMPLETION_INDEX"}, world: []string{"ANTIPHASE_WORLD_SIZE"},
		local: []string{"ANTIPHASE_LOCAL_RANK"},
		missingWorld: "set ANTIPHASE_WORLD_SIZE in the manifest to the job's completions, or use --launcher none " +
			"where the pods are runs of their own",
	},
}

// read returns what the environment states in this launcher's variables; nil if nothing, with a note if that needs a
// reason.
func (s *source) read(getenv func(string) string) (*Finding, string, error) {
	if first(getenv, s.rank) == "" {
		return nil, "", nil
	}
	if s.there != nil {
		if ok, note := s.there(getenv); !ok {
			return nil, note, nil
		}
	}
	f := &Finding{Source: s.name, Variables: map[string]string{}}
	for _, x := range []struct {
		names []string
		to    *int
		none  int
	}{{s.rank, &f.rank, -1}, {s.world, &f.world, -1}, {s.local, &f.local, -1}, {s.localSize, &f.localSize, 0}, {s.node,
		&f.node, -1}, {s.restart, &f.restart, 0}} {
		if err := f.number(getenv, x.names, x.to, x.none); err != nil {
			return nil, "", err
		}
	}
	if f.world < 0 {
		remedy := s.missingWorld
		if remedy == "" {
			remedy = "set " + s.world[0] + ", or unset " + s.rank[0]
		}
		return nil, "", fmt.Errorf("%s says rank %d, but not of how many: %s", s.name, f.rank, remedy)
	}
	f.job = first(getenv, s.job)
	if m := getenv("ANTIPHASE_MASTER"); m != "" {
		f.master = m
		f.Variables["ANTIPHASE_MASTER"] = m
	} else if s.more != nil {
		if err := s.more(f, getenv); err != nil {
			return nil, "", err
		}
	}
	return f, "", f.check()
}

// number reads the first variable of names that is set.
func (f *Finding) number(getenv func(string) string, names []string, to *int, none int) error {
	*to = none
	for _, name := range names {
		v := getenv(name)
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: %s is %q, must be a number from 0 up", f.Source, name, v)
		}
		f.Variables[name] = v
		*to = n
		return nil
	}
	return nil
}

func first(getenv func(string) string, names []string) string {
	for _, n := range names {
		if v := getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// torchrunMaster uses MASTER_ADDR and MASTER_PORT. If torchrun's own agent listens on that port, we use the next one.
func torchrunMaster(f *Finding, getenv func(string) string) error {
	host, port := getenv("MASTER_ADDR"), getenv("MASTER_PORT")
	if host == "" {
		return nil
	}
	if port == "" {
		port = "29500"
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65534 {
		return fmt.Errorf("torchrun: MASTER_PORT is %q, must be a port", port)
	}
	if strings.EqualFold(getenv("TORCHELASTIC_USE_AGENT_STORE"), "true") {
		n++
	}
	f.Variables["MASTER_ADDR"], f.Variables["MASTER_PORT"] = host, port
	f.master = net.JoinHostPort(host, strconv.Itoa(n))
	if f.job == "" {
		f.job = f.master
	}
	return nil
}

// slurmStep reports whether srun started this process. A batch script also has the job's variables, but is one process.
func slurmStep(getenv func(string) string) (bool, string) {
	if getenv("SLURM_STEP_ID") != "" && getenv("SLURM_STEP_NUM_TASKS") != "" {
		return true, ""
	}
	return false, fmt.Sprintf("slurm job %s is there, but this process was not started by srun: it counts as one "+
		"process", getenv("SLURM_JOB_ID"))
}

// slurmMaster is the first host of the step, with a port derived from job and step.
func slurmMaster(f *Finding, getenv func(string) string) error {
	job, err := strconv.Atoi(getenv("SLURM_JOB_ID"))
	if err != nil {
		return nil // no address: flags may name one
	}
	step, _ := strconv.Atoi(getenv("SLURM_STEP_ID")) // a step has a number, see slurmStep
	f.job = fmt.Sprintf("%d.%d", job, step)
	f.Variables["SLURM_JOB_ID"], f.Variables["SLURM_STEP_ID"] = getenv("SLURM_JOB_ID"), getenv("SLURM_STEP_ID")
	if list := first(getenv, []string{"SLURM_STEP_NODELIST", "SLURM_NODELIST"}); list != "" {
		f.Variables["SLURM_STEP_NODELIST"] = list
		f.master = net.JoinHostPort(firstHost(list), strconv.Itoa(61440+(job+step)%4096))
	}
	if n := tasksOnNode(getenv("SLURM_STEP_TASKS_PER_NODE"), max(f.node, 0)); n > 0 {
		f.localSize = n
	}
	return nil
}

// firstHost is the first name of a host list such as gpu[007-012,020],login1.
func firstHost(list string) string {
	open := strings.IndexByte(list, '[')
	comma := strings.IndexByte(list, ',')
	if open < 0 || comma >= 0 && comma < open {
		host, _, _ := strings.Cut(list, ",")
		return host
	}
	end := strings.IndexAny(list[open:], "-,]")
	if end < 0 {
		return list[:open]
	}
	number := list[open+1 : open+end]
	tail := ""
	if shut := strings.IndexByte(list[open:], ']'); shut >= 0 {
		tail = firstHost(list[open+shut+1:]) // a name may have several brackets: rack[1-2]n[1-4]
	}
	return list[:open] + number + tail
}

// tasksOnNode reads a list such as 4(x2),3: the tasks of each node in turn. It returns 0 if the list does not cover the
// node.
func tasksOnNode(list string, node int) int {
	for part := range strings.SplitSeq(list, ",") {
		count, repeat, _ := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0
		}
		times := 1
		if repeat != "" {
			if times, err = strconv.Atoi(repeat); err != nil {
				return 0
			}
		}
		if node < times {
			return n
		}
		node -= times
	}
	return 0
}
