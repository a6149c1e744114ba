package data_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"antiphase/data"
)

// bytesEncoder stands in for a tokenizer: ids are bytes, 256 ends a text.
type bytesEncoder struct{}

func (bytesEncoder) EncodeOrdinary(dst []int32, text string) []int32 {
	for _, c := range []byte(text) {
		dst = append(dst, int32(c))
	}
	return dst
}
func (bytesEncoder) Vocab() int         { return 257 }
func (bytesEncoder) EOS() (int32, bool) { return 256, true }
func (bytesEncoder) Hash() string       { return "bytes" }

// From a spec to batches, and back to the same place.
func Example() {
	tmp, err := os.MkdirTemp("", "data")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(tmp)
	src, err := data.Open("synthetic:seed=7,docs=200,len=400,mix=needle:2+prose:1")
	if err != nil {
		panic(err)
	}
	dir := filepath.Join(tmp, "set")
	if _, err := data.Build(context.Background(), dir, []data.Source{src}, bytesEncoder{},
		data.BuildOptions{HeldOut: 0.05}); err != nil {
		panic(err)
	}
	set, err := data.OpenSet(dir, true)
	if err != nil {
		panic(err)
	}
	defer set.Close()
	train, err := set.Split(data.Train)
	if err != nil {
		panic(err)
	}
	const B, T = 4, 64
	in, out, starts := make([]int32, B*T), make([]int32, B*T), make([]int32, B*T)
	l := data.NewLoader(train, B, T, 1)
	l.Next(in, out, starts)
	here := l.Position()
	l.Next(in, out, starts)
	again := append([]int32(nil), in...)
	if err := l.Seek(here); err != nil {
		panic(err)
	}
	l.Next(in, out, starts)
	fmt.Println(fmt.Sprint(again) == fmt.Sprint(in), in[1] == out[0])
	// Output: true true
}

// The evaluation prompt ends where the number belongs.
func ExampleNewNeedle() {
	n := data.NewNeedle(rand.New(rand.NewPCG(1, 1)), data.NeedleOptions{Needles: 2, Queries: 2, Bytes: 350})
	fmt.Println(n.Prompt[n.QuerySpan[0]:] + "|" + n.Completion())
	for _, s := range n.Spans {
		fmt.Println(n.Prompt[s[0]:s[1]])
	}
	// Output:
	// Which magic codes begin with Riga and Paris? The magic code is Riga| 23. The magic code is Paris 31.
	// The magic code is Riga 23.
	// The magic code is Paris 31.
}
