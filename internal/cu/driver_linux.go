//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"errors"

	"antiphase/internal/handlers"
)

// gpu is the Driver of one NVIDIA GPU: its context, and over it memory, kernels and the library of products.
type gpu struct {
	*context
	memory
	kernels
	lt *cublasLt
}

func newGPU(progress func(string)) *gpu {
	c := &context{}
	return &gpu{context: c, memory: memory{context: c}, kernels: kernels{context: c, progress: progress}}
}

// Open opens GPU number ordinal. progress is called for each kernel that must be built; it may be nil.
func Open(ordinal int, progress func(string)) (Driver, error) {
	cuda, err := openLib("libcuda.so.1", "libcuda.so")
	if err != nil {
		return nil, unavailable("no NVIDIA driver: %v", err)
	}
	if progress == nil {
		progress = func(string) {}
	}
	g := newGPU(progress)
	if err := cuda.symbols(g.api.table()); err != nil {
		return nil, unavailable("the NVIDIA driver is too old: %v", err)
	}
	g.tiler.open(cuda)
	if err := g.find(ordinal); err != nil {
		return nil, err
	}
	if g.rtc, err = openNVRTC(); err != nil {
		return nil, unavailable("no kernel compiler (NVRTC): %v; ANTIPHASE_CUDA_PATH may name its folder", err)
	}
	g.info.NVRTC, g.rtc.note = g.rtc.version, progress
	if err := g.start(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// start creates the context and the resources of every step.
func (g *gpu) start() error {
	defer handlers.Keep()()
	if err := g.context.open(); err != nil {
		return err
	}
	defer g.enter()()
	g.kernels.open()
	if err := g.stage.open(g.context); err != nil {
		return err
	}
	var err error
	g.lt, err = openCublasLt(&g.memory)
	if err != nil {
		g.progress("cuBLASLt: " + err.Error() + "; products run on the built-in kernel")
		return nil
	}
	g.info.CublasLt = g.lt.version
	return nil
}

// Close waits for all work and releases everything.
func (g *gpu) Close() error {
	if g.handle == 0 {
		return nil
	}
	defer g.enter()()
	err := g.check("cuStreamSynchronize", fast(g.api.streamSync, g.stream))
	if g.lt != nil {
		g.lt.close()
	}
	g.memory.close()
	g.kernels.close()
	return errors.Join(err, g.context.close())
}

// MatMul computes a product if cuBLASLt can.
func (g *gpu) MatMul(p *Product) (bool, error) {
	if g.lt == nil {
		return false, nil
	}
	defer g.enter()()
	return g.lt.multiply(p)
}
