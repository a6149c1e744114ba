package infer_test

import (
	"context"
	"fmt"

	"antiphase/device/cpu"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/model"
)

// newModel is a model of random weights: it babbles, but always the same.
func newModel() (*model.Model, func() error) {
	c, err := model.Config{Arch: "diff", Vocab: 64, Context: 128, Layers: 2, Dim: 32, Heads: 2, HeadDim: 8}.Complete()
	if err != nil {
		panic(err)
	}
	dev := cpu.New(cpu.Options{})
	m, err := model.New(dev, c, layer.Memory{})
	if err != nil {
		panic(err)
	}
	m.Init(1)
	return m, dev.Close
}

// Two prompts share their batches; each request's result is the one it has alone.
func ExampleEngine_Generate() {
	m, stop := newModel()
	defer stop()
	e, err := infer.New(m, nil, infer.Options{})
	if err != nil {
		panic(err)
	}
	defer e.Close()

	reqs := []infer.Request{
		{IDs: []int32{1, 2, 3}, Sampling: infer.Sampling{MaxTokens: 4}},
		{IDs: []int32{7}, Sampling: infer.Sampling{Temperature: 0.8, TopP: 0.95, Seed: 42, MaxTokens: 6}},
	}
	count := make([]int, len(reqs))
	reason := make([]string, len(reqs))
	err = e.Generate(context.Background(), reqs, func(i int, ev infer.Event) bool {
		count[i]++
		reason[i] = ev.Reason
		return true // false would end request i here
	})
	fmt.Println(count, reason, err)
	// Output: [4 6] [length length] <nil>
}

// A session computes only the tokens that are new to it.
func ExampleSession() {
	m, stop := newModel()
	defer stop()
	e, err := infer.New(m, nil, infer.Options{Slots: 1})
	if err != nil {
		panic(err)
	}
	defer e.Close()
	s := e.NewSession()
	defer s.Close()

	for turn := range 3 {
		s.Append(10, 11, 12)
		before := e.Stats().Rows
		err := s.Generate(context.Background(), infer.Sampling{MaxTokens: 5}, func(infer.Event) bool { return true })
		fmt.Println("turn", turn, "has", len(s.Tokens()), "tokens and computed", e.Stats().Rows-before, err)
	}
	// Output:
	// turn 0 has 8 tokens and computed 7 <nil>
	// turn 1 has 16 tokens and computed 8 <nil>
	// turn 2 has 24 tokens and computed 8 <nil>
}
