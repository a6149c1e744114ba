package data

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

func BenchmarkRandom(b *testing.B) { benchmarkNext(b, NewLoader) }
func BenchmarkStream(b *testing.B) { benchmarkNext(b, NewStream) }

func benchmarkNext(b *testing.B, load func(*Split, int, int, uint64) *Loader) {
	for _, enc := range []byteEncoder{narrow, wide} {
		b.Run(fmt.Sprintf("width%d", tokenWidth(enc.vocab)), func(b *testing.B) {
			const B, T = 16, 1024
			l := load(split(b, buildSet(b, must(parseSynthetic("docs=4000")), enc, BuildOptions{}), Train), B, T, 1)
			in, out, starts := make([]int32, B*T), make([]int32, B*T), make([]int32, B*T)
			b.ReportAllocs()
			b.SetBytes(B * T) // MB/s reads as million tokens per second
			for b.Loop() {
				l.Next(in, out, starts)
			}
		})
	}
}

func BenchmarkStreamSeek(b *testing.B) {
	l := NewStream(split(b, buildSet(b, must(parseSynthetic("docs=4000,len=128")), narrow, BuildOptions{}), Train), 1,
		1, 1)
	p := Position{Dataset: l.split.hash, Split: Train, Seed: 1, Epoch: 900, Index: 3999}
	p.Tokens = l.split.tokens - 1
	d := l.split.locate(func() uint64 { perm := newPermutation(4000, 1, 900); return perm.at(3999) }())
	p.Offset = d.len() - 1
	for b.Loop() {
		if err := l.Seek(p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	src := must(parseSynthetic("docs=2000"))
	var bytes int64
	for d := range src.Documents(context.Background()) {
		bytes += int64(len(d.Text))
	}
	b.SetBytes(bytes)
	i := 0
	for b.Loop() {
		if _, err := build(filepath.Join(b.TempDir(), fmt.Sprint(i)), src, narrow,
			BuildOptions{HeldOut: 0.01}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkSynthetic(b *testing.B) {
	for _, g := range generators {
		b.Run(g.kind, func(b *testing.B) {
			s := NewSynthetic()
			s.Mix = map[string]int{g.kind: 1}
			n, i := 0, 0
			for b.Loop() {
				n += len(s.Document(i).Text)
				i++
			}
			b.SetBytes(int64(n / i))
		})
	}
}
