package bench

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"antiphase/internal/vfs"
)

// Lengths is a distribution of lengths: N, LOW..HIGH (uniform), or @FILE with one number per line, taken in turn.
type Lengths struct {
	low, high int
	list      []int
}

// maxLengths bounds the bytes of a file of lengths.
const maxLengths = 16 << 20

// ParseLengths reads a distribution.
func ParseLengths(s string) (l Lengths, err error) {
	if name, ok := strings.CutPrefix(s, "@"); ok {
		b, err := vfs.ReadFile(vfs.OS{}, name, maxLengths)
		if err != nil {
			return l, err
		}
		for i, f := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(f)
			if err != nil || n < 1 {
				return l, fmt.Errorf("%s: entry %d is %.20q, must be a positive whole number", name, i+1, f)
			}
			l.list = append(l.list, n)
		}
		if len(l.list) == 0 {
			return l, fmt.Errorf("%s has no lengths", name)
		}
		return l, nil
	}
	low, high, ranged := strings.Cut(s, "..")
	if !ranged {
		high = low
	}
	if l.low, err = strconv.Atoi(low); err == nil {
		l.high, err = strconv.Atoi(high)
	}
	if err != nil || l.low < 1 || l.high < l.low {
		return l, fmt.Errorf("%q is not a length; want a number, LOW..HIGH or @FILE", s)
	}
	return l, nil
}

func (l *Lengths) check(name string) error {
	if l.list == nil && l.low < 1 {
		return fmt.Errorf("%s: no lengths", name)
	}
	return nil
}

func (l *Lengths) draw(r *rand.Rand, i int) int {
	if l.list != nil {
		return l.list[i%len(l.list)]
	}
	return l.low + r.IntN(l.high-l.low+1)
}

// lines reads the data of server-sent events.
type lines struct{ s *bufio.Scanner }

func newLines(r io.Reader) *lines {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	return &lines{s}
}

func (l *lines) next() (string, error) {
	for l.s.Scan() {
		if data, ok := strings.CutPrefix(l.s.Text(), "data: "); ok {
			return data, nil
		}
	}
	if err := l.s.Err(); err != nil {
		return "", err
	}
	return "", io.ErrUnexpectedEOF
}

// Spread is a distribution of seconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

func spread(x []float64) (s Spread) {
	if len(x) == 0 {
		return s
	}
	slices.Sort(x)
	for _, v := range x {
		s.Mean += v / float64(len(x))
	}
	at := func(p float64) float64 { return x[min(len(x)-1, int(p*float64(len(x))))] }
	s.P50, s.P99 = at(0.5), at(0.99)
	return s
}

// ServeResult is the result of a load. Times are in seconds.
type ServeResult struct {
	Version  int            `json:"version"`
	Rate     float64        `json:"offered_rps"`           // as it was drawn; 0 if nothing was drawn
	Open     int            `json:"concurrency,omitempty"` // requests that were kept open
	Requests int            `json:"requests"`
	Answered int            `json:"answered"`
	Rejected int            `json:"rejected_429"`
	Failed   int            `json:"failed"`
	Errors   map[string]int `json:"errors,omitempty"`
	Seconds  float64        `json:"seconds"`
	TTFT     Spread         `json:"ttft"`   // time to the first token
	TPOT     Spread         `json:"tpot"`   // mean time per token after the first, by request
	ITL      Spread         `json:"itl"`    // time between two tokens
	E2E      Spread         `json:"e2e"`    // whole answers
	Reject   Spread         `json:"reject"` // time to be refused
	RPS      float64        `json:"answered_rps"`
	Tokens   float64        `json:"output_tokens_per_s"`
	Goodput  float64        `json:"goodput_rps"` // answers within the deadline
	Deadline float64        `json:"deadline_s"`
}

func summarize(o *ServeOptions, shots []shot, took time.Duration) *ServeResult {
	r := &ServeResult{Version: 1, Open: o.Concurrency, Requests: len(shots), Seconds: took.Seconds(),
		Deadline: o.Deadline.Seconds(), Errors: map[string]int{}}
	if span := shots[len(shots)-1].at.Seconds(); span > 0 {
		r.Rate = float64(len(shots)-1) / span
	}
	var ttft, tpot, itl, e2e, reject []float64
	tokens, good := 0, 0
	for _, s := range shots {
		switch {
		case s.status == http.StatusTooManyRequests:
			r.Rejected++
			reject = append(reject, s.whole.Seconds())
			continue
		case s.err != nil:
			r.Failed++
			r.Errors[fmt.Sprintf("%.100v", s.err)]++
			continue
		}
		r.Answered++
		tokens += s.tokens
		e2e, itl = append(e2e, s.whole.Seconds()), append(itl, s.gaps...)
		if s.first > 0 { // an answer may have no text, even where the server counts tokens
			ttft = append(ttft, s.first.Seconds())
		}
		if s.first > 0 && s.tokens > 1 {
			tpot = append(tpot, (s.whole-s.first).Seconds()/float64(s.tokens-1))
		}
		if s.whole <= o.Deadline {
			good++
		}
	}
	r.TTFT, r.TPOT, r.ITL, r.E2E, r.Reject = spread(ttft), spread(tpot), spread(itl), spread(e2e), spread(reject)
	r.RPS, r.Tokens, r.Goodput = float64(r.Answered)/r.Seconds, float64(tokens)/r.Seconds, float64(good)/r.Seconds
	return r
}

// load is how the requests were sent.
func (r *ServeResult) load() string {
	switch {
	case r.Open > 0:
		return fmt.Sprintf(", %d at a time,", r.Open)
	case r.Rate > 0:
		return fmt.Sprintf(" at %.1f/s", r.Rate)
	}
	return " at once"
}

// Print writes the result for display. Kinds of times that nothing was measured of are left out.
func (r *ServeResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d requests%s in %.1f s: %d answered, %d refused (429), %d failed\n", r.Requests, r.load(),
		r.Seconds, r.Answered, r.Rejected, r.Failed)
	for _, text := range slices.Sorted(maps.Keys(r.Errors)) {
		fmt.Fprintf(w, "  %d × %s\n", r.Errors[text], text)
	}
	if r.Answered+r.Rejected == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "MS\tMEAN\tP50\tP99\t")
	for _, row := range []struct {
		name string
		s    Spread
	}{{"time to first token", r.TTFT}, {"time per output token", r.TPOT}, {"between tokens", r.ITL},
		{"whole answer", r.E2E}, {"refusal", r.Reject}} {
		if row.s == (Spread{}) {
			continue
		}
		fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.2f\t\n", row.name, 1e3*row.s.Mean, 1e3*row.s.P50, 1e3*row.s.P99)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.2f answers/s, %.0f output tokens/s, goodput %.2f/s within %g s\n", r.RPS, r.Tokens,
		r.Goodput, r.Deadline)
	return err
}
