package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/infer"
)

// BenchmarkFirstByte is the time from a request with a prompt of 64 ids to its first token, over a model that takes
// next to no time. It alternates between the engine, the handler without a network, an open connection on loopback and
// Go's HTTP client, so that all see the same machine.
func BenchmarkFirstByte(b *testing.B) {
	r := newRig(b, setup{threads: 1})
	c, err := net.Dial("tcp", r.http.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	f := &firstBytes{TB: b, rig: r, conn: c, in: bufio.NewReader(c), client: client}
	ways := []struct {
		name string
		call func(ids []int32, body string) time.Duration
		took []time.Duration
	}{{name: "engine", call: f.engine}, {name: "handler", call: f.handler}, {name: "loopback", call: f.loopback},
		{name: "client", call: f.get}}
	rnd := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		for i := range ways {
			ids := make([]int32, 64)
			for j := range ids {
				ids[j] = rnd.Int32N(250)
			}
			body, err := json.Marshal(map[string]any{"prompt": ids, "max_tokens": 2, "temperature": 0,
				"ignore_eos": true, "stream": true})
			if err != nil {
				b.Fatal(err)
			}
			ways[i].took = append(ways[i].took, ways[i].call(ids, string(body)))
		}
	}
	for _, w := range ways {
		slices.Sort(w.took)
		b.ReportMetric(float64(w.took[len(w.took)/10].Nanoseconds())/1e3, w.name+"-p10-µs")
		b.ReportMetric(float64(w.took[len(w.took)/2].Nanoseconds())/1e3, w.name+"-p50-µs")
	}
	b.ReportMetric(0, "ns/op")
}

type firstBytes struct {
	testing.TB
	rig    *rig
	conn   net.Conn
	in     *bufio.Reader
	client *http.Client
}

func (f *firstBytes) engine(ids []int32, _ string) (first time.Duration) {
	begin := time.Now()
	q := infer.Request{IDs: ids, Sampling: infer.Sampling{MaxTokens: 2, IgnoreEOS: true}}
	err := f.rig.model.Engine.Generate(context.Background(), []infer.Request{q}, func(int, infer.Event) bool {
		if first == 0 {
			first = time.Since(begin)
		}
		return true
	})
	if err != nil {
		f.Fatal(err)
	}
	return first
}

func (f *firstBytes) handler(_ []int32, body string) time.Duration {
	w := &firstFlush{header: http.Header{}}
	q, err := http.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	w.begin = time.Now()
	f.rig.Handler().ServeHTTP(w, q)
	if w.first == 0 {
		f.Fatal("nothing was sent")
	}
	return w.first
}

func (f *firstBytes) loopback(_ []int32, body string) time.Duration {
	var out bytes.Buffer
	fmt.Fprintf(&out,
		"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	begin := time.Now()
	if _, err := f.conn.Write(out.Bytes()); err != nil {
		f.Fatal(err)
	}
	res, err := http.ReadResponse(f.in, nil)
	return f.rest(res, err, time.Since(begin))
}

func (f *firstBytes) get(_ []int32, body string) time.Duration {
	begin := time.Now()
	res, err := f.client.Post(f.rig.http.URL+"/v1/completions", "application/json", strings.NewReader(body))
	return f.rest(res, err, time.Since(begin))
}

// rest reads the rest of a response.
func (f *firstBytes) rest(res *http.Response, err error, first time.Duration) time.Duration {
	if err != nil {
		f.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); !strings.Contains(string(text), "[DONE]") {
		f.Fatalf("%d %s", res.StatusCode, text)
	}
	return first
}

// firstFlush times the first flush of a response.
type firstFlush struct {
	header http.Header
	begin  time.Time
	first  time.Duration
}

func (w *firstFlush) Header() http.Header         { return w.header }
func (w *firstFlush) Write(p []byte) (int, error) { return len(p), nil }
func (w *firstFlush) WriteHeader(int)             {}
func (w *firstFlush) Flush() {
	if w.first == 0 {
		w.first = time.Since(w.begin)
	}
}
