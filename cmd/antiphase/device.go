package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda"
	"antiphase/internal/cu"
)

// maxThreads is more than the cores of any machine.
const maxThreads = 4096

// open opens the device of --device. Kernels forced on a machine that lacks them are an error: a measurement would be
// that of others.
func (a *app) open() (device.Device, error) {
	if err := cpu.Forced(); err != nil {
		return nil, usage(err)
	}
	return openNamed(a)
}

// openNamed opens cpu, cuda or cuda:N, or for auto the first GPU if there is one and it supports --precision.
func openNamed(a *app) (device.Device, error) {
	if a.threads < 0 || a.threads > maxThreads {
		return nil, usage(fmt.Errorf("--threads: is %d, must be from 0 (all cores) to %d", a.threads, maxThreads))
	}
	kind, n, found := strings.Cut(a.device, ":")
	ordinal := a.ordinal
	if found {
		var err error
		if ordinal, err = strconv.Atoi(n); err != nil || ordinal < 0 || kind != "cuda" {
			return nil, usage(fmt.Errorf("--device: %q is not a device; want auto, cpu, cuda or cuda:N", a.device))
		}
	}
	p, err := cpu.ParsePrecision(a.precision)
	if err != nil {
		return nil, usage(fmt.Errorf("--precision: %w", err))
	}
	if a.kvCache != "auto" && a.kvCache != "int8" {
		return nil, usage(fmt.Errorf("--kv-cache: %q is unknown; there are auto and int8", a.kvCache))
	}
	gpu := a.precision == "auto" || p == cpu.BF16 // the precisions that a GPU supports
	switch kind {
	case "cpu":
		return a.openCPU(p)
	case "cuda":
		if !gpu {
			return nil,
				usage(fmt.Errorf("--precision: %s is not what --device %s computes in; CUDA has bf16, the CPU has all",
					a.precision, a.device))
		}
		return a.openCUDA(ordinal)
	case "auto":
		if gpu {
			if d, err := a.openCUDA(a.ordinal); !errors.Is(err, cu.ErrUnavailable) {
				return d, err
			}
		}
		return a.openCPU(p)
	}
	return nil, usage(fmt.Errorf("--device: %q is unknown; there are auto, cpu, cuda and cuda:N", a.device))
}

// workers is the number of threads of a CPU.
func workers(a *app) int {
	if a.threads > 0 {
		return a.threads
	}
	return runtime.GOMAXPROCS(0)
}

// openTraining is open for verbs that train: int8 weights cannot be trained.
func (a *app) openTraining() (device.Device, error) {
	if p, err := cpu.ParsePrecision(a.precision); err == nil && p == cpu.Int8 {
		return nil, usage(errors.New("--precision: int8 holds weights that do not change; train in fp32 or bf16"))
	}
	return a.open()
}

// openCPU opens the CPU, whose caches have the precision of its products.
func (a *app) openCPU(p cpu.Precision) (device.Device, error) {
	if a.kvCache != "auto" {
		return nil, usage(fmt.Errorf("--kv-cache: %s needs --device cuda; the CPU keeps keys and values as it computes",
			a.kvCache))
	}
	return cpu.New(cpu.Options{Threads: a.threads, Precision: p}), nil
}

// openCUDA opens a GPU; kernels that must be built show as progress.
func (a *app) openCUDA(ordinal int) (device.Device, error) {
	d, err := cuda.Open(ordinal, cuda.Options{ByteCache: a.kvCache == "int8",
		Progress: func(s string) { a.note("%s", s) }})
	if err != nil {
		return nil, err // a nil *cuda.Device must not become a device.Device
	}
	return d, nil
}
