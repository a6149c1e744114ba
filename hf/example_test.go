package hf_test

import (
	"fmt"
	"os"
	"path/filepath"

	"antiphase/device/cpu"
	"antiphase/hf"
	"antiphase/layer"
	"antiphase/model"
)

// A model becomes a folder that transformers loads, and comes back.
func ExampleExport() {
	dev := cpu.New(cpu.Options{Threads: 1})
	defer dev.Close()
	c, err := model.Config{Arch: "diff2", Vocab: 40, Context: 32, Layers: 1, Dim: 16, Heads: 2, HeadDim: 8,
		FFN: 32}.Complete()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := model.New(dev, c, layer.Memory{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Init(1)
	e := &hf.Export{Config: c, DType: "bfloat16", Tokens: hf.Tokens{BOS: -1, Pad: -1, EOS: []int{0}},
		Values: func(name string) ([]float32, error) {
			p := m.Params.Lookup(name)
			x := make([]float32, p.Rows*p.Cols)
			p.Read(dev, x)
			return x, nil
		}}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := e.Write(filepath.Join(dir, "model"), false); err != nil {
		fmt.Println(err)
		return
	}
	f, err := hf.Load(filepath.Join(dir, "model"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	fmt.Println(f.ModelType, f.Config.Arch, f.EOS, f.Config == c)
	// Output: antiphase diff2 [0] true
}
