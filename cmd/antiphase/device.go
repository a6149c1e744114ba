package main

import (
	"fmt"

	"antiphase/device"
	"antiphase/device/cpu"
)

// open gives the device that --device names.
func (a *app) open() (device.Device, error) {
	if a.threads < 0 {
		return nil, usage(fmt.Errorf("--threads: is %d, must not be negative", a.threads))
	}
	switch a.device {
	case "auto", "cpu":
		return cpu.New(cpu.Options{Threads: a.threads}), nil
	}
	return nil, usage(fmt.Errorf("--device: %q is unknown; there are auto and cpu", a.device))
}
