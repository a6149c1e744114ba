package bench

import (
	"math"
	"net/http"
	"testing"
	"time"
)

// An answer whose tokens all lack text has no time to a first one, although the server counts them.
func TestSummaryWithoutText(t *testing.T) {
	const ms = time.Millisecond
	r := summarize(&ServeOptions{Deadline: time.Second}, []shot{
		{status: http.StatusOK, tokens: 5, whole: 300 * ms}, {status: http.StatusOK, tokens: 3, first: 40 * ms, whole: 100 * ms},
	}, time.Second)
	if r.Answered != 2 || r.Tokens != 8 || math.Abs(r.TTFT.Mean-0.04) > 1e-12 || math.Abs(r.TTFT.P50-0.04) > 1e-12 || math.Abs(r.TPOT.Mean-0.03) > 1e-12 || math.Abs(r.E2E.Mean-0.2) > 1e-12 {
		t.Errorf("%+v", r)
	}
}
