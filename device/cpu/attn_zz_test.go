package cpu

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"antiphase/device"
)

func cpuTime() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Sec) + float64(r.Utime.Usec)*1e-6
}

func TestZZ(t *testing.T) {
	if os.Getenv("ZZ") == "" {
		t.Skip()
	}
	const h = 6
	for _, n := range []struct{ b, t, d int }{{4, 512, 32}, {4, 512, 64}, {1, 2048, 64}} {
		plain := geometry{AttnShape: device.AttnShape{B: n.b, T: n.t, Heads: 2 * h, Groups: 2 * h, D: n.d, DV: n.d}, maps: 1, keys: 1}
		diff := geometry{AttnShape: device.AttnShape{B: n.b, T: n.t, Heads: h, Groups: h, D: n.d, DV: 2 * n.d}, maps: 2, keys: 2, norm: true, weight: true}
		cells := float64(n.b*h*n.d) * float64(n.t) * float64(n.t+1) / 2
		fl := [4]float64{8, 20, 12, 20}
		c := newCase(1)
		p, q := c.problem(plain), c.problem(diff)
		var f [4]func()
		f[0], f[1] = p.ops(c.cpu, onCPU)
		f[2], f[3] = q.ops(c.cpu, onCPU)
		var best [4]float64
		for it := 0; it < 12; it++ {
			for i := range f {
				t0 := cpuTime()
				f[i]()
				d := cpuTime() - t0
				if it == 1 || it > 1 && d < best[i] {
					best[i] = d
				}
			}
		}
		fmt.Printf("T%d D%d plain f %.2fms %.1f b %.2fms %.1f | diff f %.2fms %.1f b %.2fms %.1f | ratio f %.3f b %.3f all %.3f\n", n.t, n.d,
			best[0]*1e3, fl[0]*cells/best[0]/1e9, best[1]*1e3, fl[1]*cells/best[1]/1e9, best[2]*1e3, fl[2]*cells/best[2]/1e9, best[3]*1e3, fl[3]*cells/best[3]/1e9,
			best[2]/best[0], best[3]/best[1], (best[2]+best[3])/(best[0]+best[1]))
		c.cpu.Close()
	}
}
