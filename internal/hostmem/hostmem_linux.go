package hostmem

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func available() int64 { return least("/") }

// least is the minimum of all limits, with the kernel's files below root.
func least(root string) int64 { return min(machine(root), group(root), space()) }

// machine is the kernel's own estimate: free memory and the caches that it can drop.
func machine(root string) int64 {
	for line := range strings.Lines(text(root, "proc/meminfo")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" && f[2] == "kB" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n << 10
			}
		}
	}
	return Unknown
}

// files are those of a control group's memory: its limit, its usage, and what begins the names of its statistics when
// they include the groups below it, as the usage does.
type files struct{ limit, usage, total string }

var (
	version1 = files{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"}
	version2 = files{"memory.max", "memory.current", ""}
)

// group is the minimum that the control groups of this process have left, up to the root.
func group(root string) int64 {
	left := int64(Unknown)
	dir := filepath.Join(root, "sys/fs/cgroup")
	for line := range strings.Lines(text(root, "proc/self/cgroup")) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[0] == "0":
			left = min(left, version2.climb(dir, part[2]))
		case strings.Contains(","+part[1]+",", ",memory,"):
			left = min(left, version1.climb(filepath.Join(dir, "memory"), part[2]))
		}
	}
	return left
}

// climb is the minimum that the groups from path up to the root have left.
func (f files) climb(root, path string) int64 {
	left := int64(Unknown)
	for path = filepath.Join("/", path); ; path = filepath.Dir(path) {
		dir := filepath.Join(root, path)
		if most, ok := number(text(dir, f.limit)); ok {
			used, _ := number(text(dir, f.usage))
			left = min(left, max(most-max(used-f.cached(dir), 0), 0))
		}
		if path == "/" {
			return left
		}
	}
}

// cached is the part of a group's usage that the kernel drops before it refuses memory: pages of files. By usage alone
// a group that has read large files seems to be full.
func (f files) cached(dir string) int64 {
	var sum int64
	for line := range strings.Lines(text(dir, "memory.stat")) {
		name, value, _ := strings.Cut(line, " ")
		if name == f.total+"active_file" || name == f.total+"inactive_file" {
			n, _ := number(value)
			sum += n
		}
	}
	return sum
}

// text is a file's content, empty where there is none.
func text(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return string(b)
}

func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64) // "max" is not a number
	return n, err == nil
}

// space is the rest of the address-space limit (ulimit -v) but for the reserve.
func space() int64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &r) != nil {
		return Unknown
	}
	return rest(r.Cur, text("/", "proc/self/statm"))
}

// rest is what a limit leaves of the address space of a process with the given statm, whose first number is its pages.
func rest(limit uint64, statm string) int64 {
	first, _, _ := strings.Cut(statm, " ")
	pages, ok := number(first)
	if !ok || limit > Unknown/2 {
		return Unknown
	}
	return max(int64(limit)-pages*int64(os.Getpagesize())-Reserve, 0)
}
