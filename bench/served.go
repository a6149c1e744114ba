package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"antiphase/infer"
	"antiphase/internal/fault"
)

// ServedOptions compare a server with the engine inside it: the same prompts, all at once, alternating, in one process.
type ServedOptions struct {
	Engine *infer.Engine // the server's own; nothing else may use it meanwhile
	IDs    []int32       // ids used in prompts
	URL    string
	Batch  []int
	Prompt int // tokens of a prompt
	Output int // tokens of an answer
	Rounds int
	Seed   uint64
	Say    func(format string, args ...any)
}

// ServedRow is one batch size. Rates are output tokens per second after the first token; ratios are the server's
// divided by the engine's, medians and quartiles over the rounds.
type ServedRow struct {
	Batch    int        `json:"batch"`
	Engine   float64    `json:"engine_tokens_per_s"`
	Streamed float64    `json:"server_tokens_per_s"`
	Ratio    [3]float64 `json:"ratio"` // low quartile, median, high quartile
	Whole    [3]float64 `json:"ratio_not_streamed"`
	CPU      [3]float64 `json:"cpu_ratio,omitzero"` // CPU time of a streamed pass over the engine's, with the client's
	// For a single sequence: the time to the first byte, and its ratio to the engine's time to the first token plus one
	// step.
	FirstByte float64    `json:"first_byte_s,omitempty"`
	First     [3]float64 `json:"first_byte_ratio,omitzero"`
	Prefill   float64    `json:"prefill_s,omitempty"`
	Step      float64    `json:"step_s"`
}

// pass is one run of one batch: when each sequence's tokens arrived, and the end, from the start.
type pass struct {
	at     [][]time.Duration
	whole  time.Duration
	cpu    float64 // seconds of processor time
	tokens int     // of all; one that is part of a character has no event of its own
}

func newPass(n, output int) *pass {
	p := &pass{at: make([][]time.Duration, n), tokens: n * output}
	for i := range p.at {
		p.at[i] = make([]time.Duration, 0, output+2)
	}
	return p
}

// took records a token of sequence i.
func (p *pass) took(i int, at time.Duration) { p.at[i] = append(p.at[i], at) }

// rate is tokens per second while all sequences run: after the last one has begun and before the first one ends. If
// there is no such time it is the mean over the time in which any of them runs.
func (p *pass) rate() float64 {
	begin, end := p.at[0][0], p.at[0][len(p.at[0])-1]
	first, last := begin, end
	for _, at := range p.at {
		a, b := at[0], at[len(at)-1]
		begin, end = max(begin, a), min(end, b)
		first, last = min(first, a), max(last, b)
	}
	if begin >= end {
		begin, end = first, last
	}
	n, all := 0, 0
	for _, at := range p.at {
		all += len(at)
		for _, t := range at {
			if t > begin && t <= end {
				n++
			}
		}
	}
	return float64(n) / (end - begin).Seconds() * float64(p.tokens) / float64(all)
}

// check reports whether most tokens arrived as events, and drops sequences with fewer than two, which have no rate.
func (p *pass) check() error {
	all := 0
	for _, at := range p.at {
		all += len(at)
	}
	p.at = slices.DeleteFunc(p.at, func(at []time.Duration) bool { return len(at) < 2 })
	if 2*all < p.tokens || len(p.at) == 0 {
		return fmt.Errorf(
			"%d tokens came in %d events: too many have no text of their own; take a model that has learned to write",
			p.tokens, all)
	}
	return nil
}

// Served measures every batch size.
func Served(ctx context.Context, o ServedOptions) (rows []ServedRow, err error) {
	rnd := rand.New(rand.NewPCG(o.Seed, 2))
	for _, n := range o.Batch {
		o.Say("batch %d", n)
		r, err := o.compare(ctx, rnd, n)
		if err != nil {
			return rows, fmt.Errorf("batch %d: %w", n, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// round is the three passes of a comparison: the engine, the server streaming, the server answering at once.
type round struct{ engine, streamed, whole *pass }

// compare runs rounds, of which the first warms up.
func (o *ServedOptions) compare(ctx context.Context, rnd *rand.Rand, n int) (row ServedRow, err error) {
	var list []round
	for i := range o.Rounds + 1 {
		r, err := o.round(ctx, o.prompts(rnd, 3*n), n)
		if err != nil {
			return row, err
		}
		if i > 0 {
			list = append(list, r)
		}
	}
	return servedRow(n, list), nil
}

// round runs the passes, each with n prompts of its own.
func (o *ServedOptions) round(ctx context.Context, prompts [][]int32, n int) (r round, err error) {
	if r.engine, err = o.direct(ctx, prompts[:n]); err == nil {
		err = r.engine.check()
	}
	if err != nil {
		return r, err
	}
	if r.streamed, err = o.served(ctx, prompts[n:2*n], true); err == nil {
		err = r.streamed.check()
	}
	if err != nil {
		return r, err
	}
	r.whole, err = o.served(ctx, prompts[2*n:], false)
	return r, err
}

// servedRow summarises the rounds of n sequences.
func servedRow(n int, list []round) ServedRow {
	var engine, streamed, ratio, whole, cpu, first, byteTime, prefill, step []float64
	for _, r := range list {
		e, s := r.engine, r.streamed
		engine, streamed, ratio = append(engine, e.rate()), append(streamed, s.rate()), append(ratio, s.rate()/e.rate())
		whole = append(whole, e.whole.Seconds()/r.whole.whole.Seconds())
		if e.cpu > 0 {
			cpu = append(cpu, s.cpu/e.cpu)
		}
		one := float64(n) / e.rate()
		prefill, step, byteTime = append(prefill, e.at[0][0].Seconds()), append(step, one),
			append(byteTime, s.at[0][0].Seconds())
		first = append(first, s.at[0][0].Seconds()/(e.at[0][0].Seconds()+one))
	}
	row := ServedRow{Batch: n, Ratio: triple(ratio), Whole: triple(whole), CPU: triple(cpu), Engine: triple(engine)[1],
		Streamed: triple(streamed)[1], Step: triple(step)[1]}
	if n == 1 {
		row.First, row.FirstByte, row.Prefill = triple(first), triple(byteTime)[1], triple(prefill)[1]
	}
	return row
}

func triple(x []float64) (t [3]float64) {
	t[0], t[1], t[2] = quartiles(x)
	return t
}

// prompts are n lists of random ids; prefixes are almost certainly distinct, so none is reused.
func (o *ServedOptions) prompts(rnd *rand.Rand, n int) [][]int32 {
	list := make([][]int32, n)
	for i := range list {
		list[i] = make([]int32, o.Prompt)
		for j := range list[i] {
			list[i][j] = o.IDs[rnd.IntN(len(o.IDs))]
		}
	}
	return list
}

// direct is a pass through the engine alone, as in bench decode.
func (o *ServedOptions) direct(ctx context.Context, prompts [][]int32) (*pass, error) {
	p := newPass(len(prompts), o.Output)
	reqs := make([]infer.Request, len(prompts))
	for i, ids := range prompts {
		reqs[i] = infer.Request{IDs: ids, Sampling: infer.Sampling{MaxTokens: o.Output, IgnoreEOS: true}}
	}
	begin, cpu := time.Now(), cpuSeconds()
	err := o.Engine.Generate(ctx, reqs, func(i int, ev infer.Event) bool {
		p.took(i, time.Since(begin))
		return true
	})
	p.whole, p.cpu = time.Since(begin), cpuSeconds()-cpu
	return p, err
}

// served is a pass through HTTP: one open connection per sequence.
func (o *ServedOptions) served(ctx context.Context, prompts [][]int32, stream bool) (*pass, error) {
	p := newPass(len(prompts), o.Output)
	errs := make([]error, len(prompts))
	bodies := make([][]byte, len(prompts))
	for i, ids := range prompts {
		m := map[string]any{"prompt": ids, "max_tokens": o.Output, "temperature": 0, "ignore_eos": true,
			"stream": stream}
		if stream {
			m["stream_options"] = map[string]any{"include_usage": true}
		}
		var err error
		if bodies[i], err = json.Marshal(m); err != nil {
			return nil, err
		}
	}
	wires, err := openWires(ctx, o.URL, len(prompts))
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	begin, cpu := time.Now(), cpuSeconds()
	for i := range prompts {
		wg.Go(func() {
			defer fault.Guard()()
			errs[i] = o.one(wires[i], bodies[i], stream, p, i, begin)
		})
	}
	wg.Wait()
	p.whole, p.cpu = time.Since(begin), cpuSeconds()-cpu
	return p, errors.Join(append(errs, closeWires(wires))...)
}

// one sends a request and records its times. Every token has its own event unless it ends inside a character, so the
// server's count is used.
func (o *ServedOptions) one(w *wire, body []byte, stream bool, p *pass, i int, begin time.Time) error {
	res, err := w.send(http.MethodPost, "/v1/completions", body)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return fmt.Errorf("%s: %s", res.Status, bytes.TrimSpace(b))
	}
	if !stream {
		_, err := io.Copy(io.Discard, res.Body)
		return err
	}
	last, lines := "", newLines(res.Body)
	defer func() { p.at[i] = p.at[i][:max(0, len(p.at[i])-2)] }() // finish_reason and usage
	for {
		data, err := lines.next()
		if err != nil {
			return err
		}
		if data == "[DONE]" {
			break
		}
		p.took(i, time.Since(begin))
		last = data
	}
	var end struct {
		Usage *struct {
			Completion int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(last), &end); err != nil || end.Usage == nil || end.Usage.Completion != o.Output {
		return fmt.Errorf("the stream ended with %.200q: not %d tokens", last, o.Output)
	}
	return nil
}

// PrintServed writes rows for display.
func PrintServed(w io.Writer, rows []ServedRow) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "BATCH\tENGINE TOK/S\tSERVER TOK/S\tRATIO\tQUARTILES\tCPU TIME\tNOT STREAMED\tQUARTILES\tFIRST "+
		"BYTE MS\tPREFILL + STEP MS\tRATIO\t")
	for _, r := range rows {
		fmt.Fprintf(tw, "%d\t%.0f\t%.0f\t%.3f\t%.3f … %.3f\t%.3f\t%.3f\t%.3f … %.3f\t", r.Batch, r.Engine, r.Streamed,
			r.Ratio[1], r.Ratio[0], r.Ratio[2], r.CPU[1], r.Whole[1], r.Whole[0], r.Whole[2])
		if r.Batch == 1 {
			fmt.Fprintf(tw, "%.2f\t%.2f + %.2f\t%.2f\t\n", 1e3*r.FirstByte, 1e3*r.Prefill, 1e3*r.Step, r.First[1])
		} else {
			fmt.Fprintf(tw, "\t\t\t\n")
		}
	}
	return tw.Flush()
}
