package dist_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"antiphase/dist"
	"antiphase/dist/disttest"
)

// childEnv makes the test binary one rank of a job instead of a test: launchers start it again with this set.
const childEnv = "ANTIPHASE_DIST_CHILD"

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := children[name](); err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", name, err)
		os.Exit(1)
	}
}

// children are the programs that a launcher may start.
var children = map[string]func() error{
	"mpi":  mpiChild,
	"hang": hangChild,
	"wait": waitChild,
	"meet": meetChild,
	"dial": dialChild,
}

// dialChild reports whether somebody listens.
func dialChild() error {
	c, err := net.DialTimeout("tcp", os.Getenv("ADDR"), 2*time.Second)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("reached")
	return c.Close()
}

// openMPI is the rank that a launcher made of this process, and its engine.
func openMPI(o dist.MPIOptions) (dist.Launch, dist.Comm, error) {
	l, err := dist.Detect(dist.NoFlags(), os.Getenv)
	if err != nil {
		return l, nil, err
	}
	c, err := dist.OpenMPI(l, o)
	return l, c, err
}

// mpiChild joins through MPI, holds the engine to its contract and says so.
func mpiChild() error {
	l, c, err := openMPI(dist.MPIOptions{Fast: os.Getenv("FAST") != ""})
	if err != nil {
		return err
	}
	j, err := dist.Join(context.Background(), l, dist.Options{Via: c})
	if err != nil {
		return err
	}
	if err := disttest.Check(j.Watch(c)); err != nil {
		return err
	}
	if err := j.Agree("facts", map[string]string{"recipe": "same",
		"data": os.Getenv("DATA_OF_" + fmt.Sprint(l.Rank))}); err != nil {
		return errors.Join(err, c.Close(), j.Close())
	}
	fmt.Printf("rank %d of %d from %s by %v: right\n", l.Rank, l.World, l.Source, c)
	return errors.Join(c.Close(), j.Close())
}

// hangChild joins through MPI and waits in a barrier that its last rank never comes to; losing a rank ends it with
// code 75.
func hangChild() error {
	l, c, err := openMPI(dist.MPIOptions{})
	if err != nil {
		return err
	}
	j, err := dist.Join(context.Background(), l, dist.Options{Via: c, PeerTimeout: 2 * time.Second,
		OnLost: func(err error) {
			fmt.Printf("rank %d: %v\n", l.Rank, err)
			os.Exit(75)
		}})
	if err != nil {
		return err
	}
	fmt.Printf("joined %d pid %d\n", l.Rank, os.Getpid())
	if l.Rank == l.World-1 {
		time.Sleep(time.Minute)
	}
	return j.Watch(c).Barrier()
}

// waitChild joins in a folder, without MPI, and waits until the job is lost.
func waitChild() error {
	l, err := dist.Detect(dist.NoFlags(), os.Getenv)
	if err != nil {
		return err
	}
	silence, err := time.ParseDuration(cmp.Or(os.Getenv("SILENCE"), "2s"))
	if err != nil {
		return err
	}
	_, err = dist.Join(context.Background(), l,
		dist.Options{Rendezvous: os.Getenv("MEET"), Interface: cmp.Or(os.Getenv("INTERFACE"), "127.0.0.1"),
			PeerTimeout: silence, OnLost: func(err error) {
				fmt.Printf("rank %d: %v\n", l.Rank, err)
				os.Exit(75)
			}})
	if err != nil {
		return err
	}
	fmt.Printf("joined %d pid %d\n", l.Rank, os.Getpid())
	time.Sleep(time.Minute)
	return errors.New("nothing happened for a minute")
}

// meetChild meets the other ranks where the launcher's variables alone say, without MPI.
func meetChild() error {
	l, err := dist.Detect(dist.NoFlags(), os.Getenv)
	if err != nil {
		return err
	}
	if l.World == 1 {
		fmt.Printf("one process, %s: %v\n", l.Source, l.Notes)
		return nil
	}
	j, err := dist.Join(context.Background(), l, dist.Options{})
	if err != nil {
		return err
	}
	fmt.Printf("rank %d of %d from %s: met %d\n", l.Rank, l.World, l.Source, len(j.Peers))
	return j.Close()
}
