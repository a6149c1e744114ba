package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"antiphase/dist"
	"antiphase/internal/vfs"
)

// jobFlags describe this process's place among others: what the launcher left open, or got wrong.
type jobFlags struct {
	dist.Explicit
	rendezvous, iface string
	join, peer, stall time.Duration
}

func (f *jobFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.Launcher, "launcher", os.Getenv("ANTIPHASE_LAUNCHER"),
		"source of rank and world size: auto, none (single process) or one of "+strings.Join(dist.Launchers()[2:],
			", "))
	fl.IntVar(&f.Rank, "rank", -1, "rank of this process, if no launcher sets it")
	fl.IntVar(&f.World, "world-size", -1, "number of ranks, if no launcher sets it")
	fl.IntVar(&f.LocalRank, "local-rank", -1, "rank within this machine; selects the GPU")
	fl.StringVar(&f.rendezvous, "rendezvous", os.Getenv("ANTIPHASE_RENDEZVOUS"),
		"rendezvous of the ranks: tcp://host:port (needs ANTIPHASE_SECRET) or file:///shared/folder")
	fl.StringVar(&f.iface, "interface", os.Getenv("ANTIPHASE_INTERFACE"),
		"network interface or address that rank 0 listens on")
	fl.DurationVar(&f.join, "join-timeout", dist.DefaultJoin,
		"maximum time that ranks wait for each other at the start")
	fl.DurationVar(&f.peer, "peer-timeout", dist.DefaultPeer,
		"time without a heartbeat after which a rank counts as lost")
	fl.DurationVar(&f.stall, "stall-timeout", dist.DefaultStall,
		"maximum time that ranks wait for each other in one collective")
}

// launch determines this process's rank.
func (f *jobFlags) launch() (dist.Launch, error) {
	l, err := dist.Detect(f.Explicit, os.Getenv)
	if err != nil {
		return l, usage(err)
	}
	return l, nil
}

// options are the options of dist.Join.
func (f *jobFlags) options() (dist.Options, error) {
	for name, d := range map[string]time.Duration{"join-timeout": f.join, "peer-timeout": f.peer,
		"stall-timeout": f.stall} {
		if d < time.Second {
			return dist.Options{}, usage(fmt.Errorf("--%s: is %s, must be a second or more", name, d))
		}
	}
	s, err := secret()
	return dist.Options{Rendezvous: f.rendezvous, Interface: f.iface, Secret: s, JoinTimeout: f.join,
		PeerTimeout: f.peer, StallTimeout: f.stall}, err
}

// maxSecret bounds the bytes of a file with a secret.
const maxSecret = 1 << 16

// secret is the job's, from the environment or from a file that it names. There is no flag, because process lists show
// flags.
func secret() ([]byte, error) {
	value, path := os.Getenv("ANTIPHASE_SECRET"), os.Getenv("ANTIPHASE_SECRET_FILE")
	switch {
	case value != "" && path != "":
		return nil, usage(errors.New("ANTIPHASE_SECRET and ANTIPHASE_SECRET_FILE are both set; set only one"))
	case path == "":
		return []byte(value), nil
	}
	b, err := vfs.ReadFile(vfs.OS{}, path, maxSecret) // no pipe: every rank reads it
	if err != nil {
		return nil, usage(fmt.Errorf("ANTIPHASE_SECRET_FILE: %w", err))
	}
	if b = []byte(strings.TrimSpace(string(b))); len(b) == 0 {
		return nil, usage(fmt.Errorf("ANTIPHASE_SECRET_FILE: %s is empty", path))
	}
	return b, nil
}
