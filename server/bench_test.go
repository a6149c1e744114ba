package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"antiphase/infer"
)

// BenchmarkStream is 32 streams of 64 tokens through HTTP on loopback, and the same sequences through the engine alone,
// over a model that takes next to no time: the difference is what the server adds to a token, the client's reading
// included.
func BenchmarkStream(b *testing.B) {
	const streams, tokens = 32, 64
	r := newRig(b, setup{Options: infer.Options{Slots: streams}})
	b.Run("engine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var wg sync.WaitGroup
			for range streams {
				wg.Go(func() {
					q := infer.Request{IDs: []int32{65}, Sampling: infer.Sampling{MaxTokens: tokens, IgnoreEOS: true}}
					if err := r.model.Engine.Generate(context.Background(), []infer.Request{q},
						func(int, infer.Event) bool { return true }); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*tokens), "ns/token")
	})
	b.Run("server", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			var wg sync.WaitGroup
			for range streams {
				wg.Go(func() {
					res, err := client.Post(r.http.URL+"/v1/completions", "application/json", strings.NewReader(
						`{"prompt":"A","max_tokens":64,"temperature":0,"ignore_eos":true,"stream":true}`))
					if err != nil {
						b.Error(err)
						return
					}
					if n, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK ||
						n < 100*tokens {
						b.Errorf("%d %v, %d bytes", res.StatusCode, err, n)
					}
					res.Body.Close()
				})
			}
			wg.Wait()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*streams*tokens), "ns/token")
	})
}
