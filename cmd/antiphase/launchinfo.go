package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antiphase/dist"
)

func launchInfoVerb(a *app) *cobra.Command {
	var f jobFlags
	var asJSON, meet bool
	c := &cobra.Command{
		Use:   "launch-info",
		Short: "Show the rank of this process in its job, and how it was detected",
		Long: `Launch-info reads the environment variables of mpirun, srun, torchrun or Kubernetes, as train does, and
prints what it found and why. Contradictions are errors.

With --meet the ranks also connect: they find each other, compare versions and, on a CPU, run a collective
over MPI. Run it under a new launcher before a long job.`,
		Example: `  mpirun -np 4 antiphase launch-info
  srun -n 4 --mpi=pmix antiphase launch-info --meet --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showLaunch(a, cmd, &f, asJSON, meet)
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one line of JSON")
	c.Flags().BoolVar(&meet, "meet", false, "connect to the other ranks and run a collective")
	return c
}

// launchReport is the output of launch-info.
type launchReport struct {
	dist.Launch
	Meets  string   `json:"meets,omitempty"`  // where
	Engine string   `json:"engine,omitempty"` // that carried something
	Peers  []string `json:"peers,omitempty"`
}

func showLaunch(a *app, cmd *cobra.Command, f *jobFlags, asJSON, meet bool) error {
	l, err := f.launch()
	if err != nil {
		return err
	}
	r := launchReport{Launch: l}
	if err := f.alone(l, cmd.Flags()); err != nil {
		return err
	}
	if l.World > 1 {
		opt, err := f.options()
		if err != nil {
			return err
		}
		if r.Meets, err = place(l, opt); err != nil && !meet {
			r.Meets = "nowhere yet: " + strings.TrimPrefix(err.Error(), "dist: ")
		}
		if meet {
			if err := meetLaunch(cmd.Context(), l, opt, &r); err != nil {
				return err
			}
		}
	}
	// One write, because the ranks of a launcher share their output.
	text := r.text()
	if asJSON {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		text = append(line, '\n')
	}
	_, err = a.out.Write(text)
	return err
}

// place returns where ranks meet; those of an MPI launcher meet through MPI unless told otherwise.
func place(l dist.Launch, o dist.Options) (string, error) {
	if l.MPI() && o.Rendezvous == "" {
		return "mpi", nil
	}
	return dist.Place(l, o)
}

// meetLaunch connects the ranks and, if the launcher starts MPI, runs a sum over it.
func meetLaunch(ctx context.Context, l dist.Launch, o dist.Options, r *launchReport) error {
	c, err := dist.OpenMPI(l, dist.MPIOptions{Timeout: o.JoinTimeout})
	switch {
	case err == nil:
		o.Via = c
		r.Engine = fmt.Sprint(c)
	case l.MPI():
		return err
	default:
		r.Engine = "none for CPUs: " + strings.TrimPrefix(err.Error(), "dist: ")
	}
	j, err := dist.Join(ctx, l, o)
	if err != nil {
		return err
	}
	r.Meets, r.Peers = j.Where, j.Peers
	if err := j.Agree("version", map[string]string{"version": version()}); err != nil {
		return errors.Join(err, j.Close())
	}
	if c != nil {
		err = errors.Join(dist.Probe(j.Watch(c)), c.Close())
	}
	return errors.Join(err, j.Close())
}

// text formats the report for display.
func (r *launchReport) text() []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	unknown := func(n, none int) string {
		if n == none {
			return "unknown"
		}
		return fmt.Sprint(n)
	}
	fmt.Fprintf(w, "source\t%s\n", r.Source)
	fmt.Fprintf(w, "rank\t%d of %d\n", r.Rank, r.World)
	fmt.Fprintf(w, "on this machine\trank %s of %s\n", unknown(r.LocalRank, -1), unknown(r.LocalSize, 0))
	fmt.Fprintf(w, "node\t%s\n", unknown(r.Node, -1))
	for _, x := range []struct{ name, value string }{{"job", r.Job}, {"master", r.Master}, {"ranks meet", r.Meets},
		{"engine", r.Engine}} {
		if x.value != "" {
			fmt.Fprintf(w, "%s\t%s\n", x.name, x.value)
		}
	}
	for i, p := range r.Peers {
		fmt.Fprintf(w, "rank %d\t%s\n", i, p)
	}
	for _, f := range r.Seen {
		for _, k := range slices.Sorted(maps.Keys(f.Variables)) {
			fmt.Fprintf(w, "%s says\t%s=%s\n", f.Source, k, f.Variables[k])
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note\t%s\n", n)
	}
	_ = w.Flush() // writes to a buffer do not fail
	return b.Bytes()
}
