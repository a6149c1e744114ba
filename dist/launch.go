package dist

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Launch is what a process knows about its job before it has met other ranks.
type Launch struct {
	// Source is the origin of this information: single, flags, antiphase, torchrun, slurm, openmpi, mpich, mvapich2 or
	// kubernetes.
	Source    string `json:"source"`
	Rank      int    `json:"rank"`
	World     int    `json:"world_size"`
	LocalRank int    `json:"local_rank"` // among the ranks of this machine; -1 where nobody says
	LocalSize int    `json:"local_size"` // ranks on this machine; 0 where nobody says
	Node      int    `json:"node"`       // -1 if unknown
	Master    string `json:"master,omitempty"`
	Job       string `json:"job,omitempty"` // tells this job from others of the same user
	Restart   int    `json:"restart_count"`

	Seen  []Finding `json:"seen"`            // every launcher whose variables are set, in order of precedence
	Notes []string  `json:"notes,omitempty"` // what was seen and not counted, and why
}

// Finding is what one source states. Fields that it does not state are -1 (Rank, World, LocalRank, Node) or empty.
type Finding struct {
	Source    string            `json:"source"`
	Variables map[string]string `json:"variables"`
	rank      int
	world     int
	local     int
	localSize int
	node      int
	restart   int
	master    string
	job       string
}

// Explicit holds the values of flags, which precede any variable; Rank and World are -1 if not given.
type Explicit struct {
	Launcher    string // trust only this source; "" or auto compares all of them, none is a single process
	Rank, World int
	LocalRank   int
}

// NoFlags is Explicit with nothing given.
func NoFlags() Explicit { return Explicit{Rank: -1, World: -1, LocalRank: -1} }

// Launchers lists the values of Explicit.Launcher.
func Launchers() []string {
	out := []string{"auto", "none", "flags"}
	for _, s := range sources {
		out = append(out, s.name)
	}
	return out
}

// Local reports whether every rank runs on this machine.
func (l Launch) Local() bool { return l.World == 1 || l.LocalSize == l.World }

// MPI reports whether an MPI library's own launcher started the ranks, even if other launchers are detected.
func (l Launch) MPI() bool {
	return l.sees("openmpi") || l.sees("mpich") || l.sees("mvapich2")
}

func (l Launch) sees(source string) bool {
	return slices.ContainsFunc(l.Seen, func(f Finding) bool { return f.Source == source })
}

// Detect determines rank and world size from flags and the environment. Precedence is flags, ANTIPHASE_*, torchrun,
// Slurm step, Open MPI, MPICH, MVAPICH2, indexed Kubernetes job, single; values that two sources both state must be
// equal.
func Detect(flags Explicit, getenv func(string) string) (Launch, error) {
	if err := flags.checkLauncher(); err != nil {
		return Launch{}, err
	}
	single := Launch{Source: "single", World: 1, LocalSize: 1}
	if flags.Launcher == "none" {
		return single, nil
	}
	all, notes, err := find(flags, getenv)
	if err != nil {
		return Launch{}, err
	}
	if len(all) == 0 {
		single.Notes = notes
		return single, rankless(getenv)
	}
	if err := agreeing(all); err != nil {
		return Launch{}, err
	}
	l := merge(all)
	l.Notes = notes
	return l, l.place(flags.LocalRank)
}

// place applies the flag of the local rank, which may be all that a launcher leaves open; -1 is none.
func (l *Launch) place(local int) error {
	switch {
	case local == -1:
		return nil
	case local < 0:
		return fmt.Errorf("--local-rank %d: ranks of a machine count from 0", local)
	case l.World > 1 && l.LocalSize > 0 && local >= l.LocalSize:
		return fmt.Errorf("--local-rank %d: ranks of a machine count from 0, and the launcher says %d on this one",
			local, l.LocalSize)
	case l.LocalRank >= 0 && l.LocalRank != local:
		return fmt.Errorf("--local-rank %d: the launcher says local rank %d; leave the flag out", local, l.LocalRank)
	}
	l.LocalRank = local
	return nil
}

// rankless rejects a world of several ranks in which this process has no rank: every rank would train a copy. A Slurm
// job has a size outside of its steps too.
func rankless(getenv func(string) string) error {
	for _, s := range sources {
		for _, name := range s.world {
			if w := getenv(name); w != "" && w != "1" && s.there == nil {
				return fmt.Errorf("%s is %s, but nothing says which rank this process is: set %s, or unset %s",
					name, w, s.rank[0], name)
			}
		}
	}
	return nil
}

// checkLauncher rejects an unknown launcher, and flags of rank and size next to one that is trusted alone.
func (e Explicit) checkLauncher() error {
	switch name := e.Launcher; {
	case name == "" || name == "auto" || name == "flags":
	case !slices.Contains(Launchers(), name):
		return fmt.Errorf("launcher %q is unknown; there are %s", name, strings.Join(Launchers(), ", "))
	case e.Rank != -1 || e.World != -1:
		return fmt.Errorf("--rank and --world-size: have no effect with launcher %s; leave them out, or use "+
			"--launcher flags", name)
	}
	return nil
}

// find queries every trusted source.
func find(flags Explicit, getenv func(string) string) (all []Finding, notes []string, err error) {
	only := flags.Launcher
	if only == "auto" {
		only = ""
	}
	if f, ok, err := flags.finding(); err != nil {
		return nil, nil, err
	} else if ok && (only == "" || only == "flags") {
		all = append(all, f)
	}
	for _, s := range sources {
		f, note, err := s.read(getenv)
		switch {
		case err != nil && (only == "" || only == s.name):
			return nil, nil, err
		case f == nil && note != "":
			notes = append(notes, note)
		case f != nil && only != "" && only != s.name:
			notes = append(notes, fmt.Sprintf("%s is there and not looked at, because %s is to be trusted alone",
				s.name, only))
		case f != nil:
			all = append(all, *f)
		}
	}
	if only != "" && len(all) == 0 {
		return nil, nil, fmt.Errorf("launcher %s is to be trusted alone, but it says nothing here", only)
	}
	return all, notes, nil
}

// finding is what the flags state; ok is false if they state nothing about rank and world size.
func (e Explicit) finding() (f Finding, ok bool, err error) {
	if e.Rank < -1 || e.World < -1 || e.World == 0 {
		return f, false, fmt.Errorf("--rank %d --world-size %d: ranks count from 0, and there is at least one",
			e.Rank, e.World)
	}
	if e.Rank < 0 && e.World < 0 {
		return f, false, nil
	}
	if e.Rank < 0 || e.World < 0 {
		return f, false, fmt.Errorf("a rank and a world size belong together: give both --rank and --world-size")
	}
	f = Finding{Source: "flags", rank: e.Rank, world: e.World, local: e.LocalRank, node: -1, restart: -1,
		Variables: map[string]string{"--rank": strconv.Itoa(e.Rank), "--world-size": strconv.Itoa(e.World)}}
	return f, true, f.check()
}

func (f *Finding) check() error {
	switch {
	case f.world < 1:
		return fmt.Errorf("%s says a world of %d ranks (%s)", f.Source, f.world, f.vars())
	case f.rank < 0 || f.rank >= f.world:
		return fmt.Errorf("%s says rank %d of %d: ranks count from 0 (%s)", f.Source, f.rank, f.world, f.vars())
	case f.localSize > f.world:
		return fmt.Errorf("%s says %d ranks on this machine, of %d in all (%s)", f.Source, f.localSize,
			f.world, f.vars())
	case f.localSize > 0 && f.local >= f.localSize:
		return fmt.Errorf("%s says local rank %d of %d (%s)", f.Source, f.local, f.localSize, f.vars())
	}
	return nil
}

// vars lists the variables for a message.
func (f *Finding) vars() string {
	var out []string
	for k, v := range f.Variables {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

// agreeing rejects sources that contradict each other: one of them is wrong about this process.
func agreeing(all []Finding) error {
	first := &all[0]
	for i := range all[1:] {
		f := &all[i+1]
		if f.rank != first.rank || f.world != first.world || f.local >= 0 && first.local >= 0 &&
			f.local != first.local {
			return fmt.Errorf("two launchers contradict each other: %s says rank %d of %d (%s), %s says rank %d of %d "+
				"(%s); unset the wrong one, or name the right one with --launcher",
				first.Source, first.rank, first.world, first.vars(), f.Source, f.rank, f.world, f.vars())
		}
	}
	return nil
}

// merge takes each field from the first source that states it.
func merge(all []Finding) Launch {
	l := Launch{Source: all[0].Source, Rank: all[0].rank, World: all[0].world, LocalRank: -1, Node: -1, Seen: all}
	for _, f := range all {
		if l.LocalRank < 0 {
			l.LocalRank = f.local
		}
		if l.LocalSize == 0 {
			l.LocalSize = f.localSize
		}
		if l.Node < 0 {
			l.Node = f.node
		}
		if l.Master == "" {
			l.Master = f.master
		}
		if l.Job == "" {
			l.Job = f.job
		}
		l.Restart = max(l.Restart, f.restart)
	}
	if l.World == 1 {
		l.LocalSize = 1
	}
	return l
}
