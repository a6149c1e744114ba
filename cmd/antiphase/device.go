package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/cuda"
	"antiphase/internal/cu"
)

// open gives the device that --device names: cpu, cuda or cuda:N, or auto, which takes the first GPU where there is one.
func (a *app) open() (device.Device, error) {
	if a.threads < 0 {
		return nil, usage(fmt.Errorf("--threads: is %d, must not be negative", a.threads))
	}
	kind, n, found := strings.Cut(a.device, ":")
	ordinal := 0
	if found {
		var err error
		if ordinal, err = strconv.Atoi(n); err != nil || ordinal < 0 || kind != "cuda" {
			return nil, usage(fmt.Errorf("--device: %q is no device; want auto, cpu, cuda or cuda:N", a.device))
		}
	}
	switch kind {
	case "cpu":
		return cpu.New(cpu.Options{Threads: a.threads}), nil
	case "cuda":
		return a.openCUDA(ordinal)
	case "auto":
		d, err := a.openCUDA(0)
		if errors.Is(err, cu.ErrUnavailable) {
			return cpu.New(cpu.Options{Threads: a.threads}), nil
		}
		return d, err
	}
	return nil, usage(fmt.Errorf("--device: %q is unknown; there are auto, cpu, cuda and cuda:N", a.device))
}

// openCUDA opens a GPU; kernels that must be built first show as progress.
func (a *app) openCUDA(ordinal int) (device.Device, error) {
	d, err := cuda.Open(ordinal, cuda.Options{Progress: func(s string) { a.note("%s", s) }})
	if err != nil {
		return nil, err // a nil *cuda.Device must not become a device.Device
	}
	return d, nil
}
