package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"antiphase/device"
	"antiphase/dist"
	"antiphase/layer"
	"antiphase/model"
)

// parts are the ranks that split the models of a verb, each with a part of every matrix (tensor parallel). Rank 0
// decides what is computed and tells the others; tensor sums go through MPI or NCCL.
type parts struct {
	job   *dist.Job
	comm  dist.Comm
	dev   device.Device
	split *layer.Split
	sent  int // messages so far
	count int // models loaded
}

// inParts runs f, which loads the models in this order with load, in one process or as rank 0; the others hold their
// parts of the models and follow until f returns.
func (a *app) inParts(ctx context.Context, models func() []string, f func() error) error {
	flags := environmentJob()
	l, err := flags.launch()
	if err != nil {
		return err
	}
	if l.World == 1 {
		return f()
	}
	opt, err := flags.options()
	if err != nil {
		return err
	}
	a.share(l)
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	var engine dist.Comm
	opt.OnLost = func(why error) { quitJob(a, l, engine, why) }
	job, engine, err := meetAll(ctx, l, d, opt)
	if err != nil {
		return err
	}
	p := &parts{job: job, comm: job.Watch(engine), dev: d}
	p.split = layer.NewSplit(p.comm)
	a.note("%d ranks hold the model together, through %v, met by %s", l.World, engine, job.Where)
	err = job.Agree("program", map[string]string{"version": version(), "command line": commandHash(),
		"device": device.IdentityOf(d).String()})
	switch {
	case err != nil:
	case l.Rank == 0:
		a.parts = p
		if err = f(); err == nil {
			err = p.tell([]int32{-1})
		}
	default:
		err = followLead(ctx, a, p, models())
	}
	return leaveTogether(job, p.comm, l, err)
}

// environmentJob is the job of a verb without job flags, from the environment.
func environmentJob() jobFlags {
	f := jobFlags{Explicit: dist.NoFlags(), rendezvous: os.Getenv("ANTIPHASE_RENDEZVOUS"),
		iface: os.Getenv("ANTIPHASE_INTERFACE"), join: dist.DefaultJoin, peer: dist.DefaultPeer,
		stall: dist.DefaultStall}
	f.Launcher = os.Getenv("ANTIPHASE_LAUNCHER")
	return f
}

// commandHash tells whether ranks were started with the same command line.
func commandHash() string {
	return fmt.Sprintf("%.6x", sha256.Sum256([]byte(strings.Join(os.Args[1:], "\x00"))))
}

// quitJob ends this process because another rank was lost.
func quitJob(a *app, l dist.Launch, engine dist.Comm, why error) {
	fmt.Fprintf(a.err, "%srank %d of %d: %v\n", a.paint(red, "error: "), l.Rank, l.World, why)
	if engine != nil {
		abort(engine, why)
	}
	os.Exit(exitFailed)
}

// tell sends a message to every other rank, and waits until they have received it.
func (p *parts) tell(words []int32) error {
	_, err := p.next(words)
	return err
}

// next returns rank 0's message on all ranks.
func (p *parts) next(words []int32) ([]int32, error) {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, uint32(w))
	}
	p.sent++
	all, err := p.job.Exchange(fmt.Sprint("words-", p.sent), b)
	if err != nil {
		return nil, err
	}
	words = words[:0]
	for b := all[0]; len(b) >= 4; b = b[4:] {
		words = append(words, int32(binary.LittleEndian.Uint32(b)))
	}
	return words, nil
}

// lead makes a model send its operations to the others, under its number.
func (p *parts) lead(m *model.Model) {
	number := int32(p.count)
	p.count++
	m.Lead(func(words []int32) error { return p.tell(append([]int32{number}, words...)) })
}

// followLead holds this rank's parts of the models and executes rank 0's messages until it ends. Only rank 0 reacts to
// signals: it drains, and tells the others.
func followLead(ctx context.Context, a *app, p *parts, names []string) error {
	var models []*model.Model
	for _, name := range names {
		l, err := loadPart(a, p.dev, name, p.split)
		if err != nil {
			return err
		}
		defer l.Model.Free()
		models = append(models, l.Model)
	}
	for {
		words, err := p.next(nil)
		switch {
		case err != nil:
			return err
		case len(words) == 1 && words[0] == -1:
			return nil
		case len(words) == 0 || words[0] < 0 || int(words[0]) >= len(models):
			return errors.New("rank 0 named a model that this rank does not have")
		}
		if err := models[words[0]].Obey(words[1:]); err != nil {
			return err
		}
	}
}
