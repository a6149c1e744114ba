package safetensors

import (
	"io"
	"testing"
)

func BenchmarkFloat32s(b *testing.B) {
	for _, d := range []DType{F32, BF16, F16} {
		b.Run(string(d), func(b *testing.B) {
			f, err := Parse(write(b, []Entry{FromFloat32s("a", d, []int{1 << 20}, make([]float32, 1<<20))}, nil))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(d.Size()) << 20)
			for b.Loop() {
				if _, err := f.Float32s("a"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, d := range []DType{F32, BF16} {
		b.Run(string(d), func(b *testing.B) {
			entries := []Entry{FromFloat32s("a", d, []int{1 << 20}, make([]float32, 1<<20))}
			b.SetBytes(int64(d.Size()) << 20)
			for b.Loop() {
				if err := Write(io.Discard, entries, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
