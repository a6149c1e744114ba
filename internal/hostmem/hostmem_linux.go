package hostmem

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func available() int64 { return least("/sys/fs/cgroup") }

// least is the minimum of all limits, with control groups below root.
func least(root string) int64 { return min(machine(), group(root), space()) }

// machine is the kernel's own estimate: free memory and the caches that it can drop.
func machine() int64 {
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte("MemAvailable:")); ok {
			if f := strings.Fields(string(rest)); len(f) == 2 && f[1] == "kB" {
				if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
					return n << 10
				}
			}
		}
	}
	return Unknown
}

// group is the minimum that the control groups of this process have left, up to the root.
func group(root string) int64 {
	left := int64(Unknown)
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[0] == "0": // version 2
			left = min(left, climb(root, part[2], "memory.max", "memory.current"))
		case strings.Contains(","+part[1]+",", ",memory,"):
			left = min(left, climb(filepath.Join(root, "memory"), part[2], "memory.limit_in_bytes", "memory.usage_in_bytes"))
		}
	}
	return left
}

func climb(root, path, limit, usage string) int64 {
	left := int64(Unknown)
	for ; ; path = filepath.Dir(path) {
		most, ok := number(filepath.Join(root, path, limit))
		used, _ := number(filepath.Join(root, path, usage))
		if ok {
			left = min(left, max(most-used, 0))
		}
		if path == "/" || path == "." || path == "" {
			return left
		}
	}
}

func number(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is not a number
	return n, err == nil
}

// space is the rest of the address-space limit (ulimit -v) but for the reserve.
func space() int64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &r) != nil || r.Cur > Unknown/2 {
		return Unknown
	}
	b, _ := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if len(f) == 0 {
		return Unknown
	}
	pages, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return Unknown
	}
	return max(int64(r.Cur)-pages*int64(os.Getpagesize())-Reserve, 0)
}
