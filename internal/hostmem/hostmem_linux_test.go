package hostmem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAvailable: there is some memory, and no more than the machine has.
func TestAvailable(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Skip(err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	if n := Available(); n < 1<<20 || n > total {
		t.Errorf("%d bytes are available, the machine has %d", n, total)
	}
	if n := machine("/"); n < 1<<20 || n > total {
		t.Errorf("%d bytes are available on the machine, it has %d", n, total)
	}
}

// host writes the files of a kernel, given as "name: text", and returns the folder.
func host(t *testing.T, list []string) string {
	t.Helper()
	root := t.TempDir()
	for _, s := range list {
		name, text, _ := strings.Cut(s, ": ")
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMachine(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{
		{"MemTotal:  900 kB\nMemFree:  100 kB\nMemAvailable:     300 kB\nBuffers:  50 kB\n", 300 << 10},
		{"MemAvailable: 0 kB\n", 0},
		{"MemAvailable: 7 kB", 7 << 10},
		{"MemTotal: 900 kB\nMemFree: 100 kB\n", Unknown}, // before Linux 3.14
		{"MemAvailable: 300\n", Unknown},
		{"MemAvailable: 300 MB\n", Unknown},
		{"MemAvailable: 300 kB more\n", Unknown},
		{"MemAvailable: some kB\n", Unknown},
		{"", Unknown},
	} {
		if got := machine(host(t, []string{"proc/meminfo: " + c.text})); got != c.want {
			t.Errorf("%q: %d bytes, want %d", c.text, got, c.want)
		}
	}
	if got := machine(t.TempDir()); got != Unknown {
		t.Errorf("no file: %d bytes", got)
	}
}

// What the groups of a process leave, in both versions: the tightest of all lines and of all groups on the way up.
func TestGroup(t *testing.T) {
	const v1, v2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
	for name, c := range map[string]struct {
		groups string // of the process
		files  []string
		want   int64
	}{
		"none":         {"", []string{v2 + "/memory.max: 10", v1 + "/memory.limit_in_bytes: 10"}, Unknown},
		"no limit":     {"0::/a\n", []string{v2 + "/a/memory.max: max\n", v2 + "/a/memory.current: 5\n"}, Unknown},
		"no files":     {"0::/a\n4:memory:/a\n", nil, Unknown},
		"own":          {"0::/a/b\n", []string{v2 + "/a/b/memory.max: 900\n", v2 + "/a/b/memory.current: 200\n"}, 700},
		"parent":       {"0::/a/b\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 300"}, 600},
		"root":         {"0::/\n", []string{v2 + "/memory.max: 900", v2 + "/memory.current: 400"}, 500},
		"not a parent": {"0::/a\n", []string{v2 + "/a/b/memory.max: 900", v2 + "/ab/memory.max: 900"}, Unknown},
		"inner is tighter": {"0::/a/b\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 300",
			v2 + "/a/b/memory.max: 100", v2 + "/a/b/memory.current: 20"}, 80},
		"outer is tighter": {"0::/a/b\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 850",
			v2 + "/a/b/memory.max: 100", v2 + "/a/b/memory.current: 20"}, 50},
		"full":         {"0::/a\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 900"}, 0},
		"over it":      {"0::/a\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 950"}, 0},
		"no usage":     {"0::/a\n", []string{v2 + "/a/memory.max: 900"}, 900},
		"colon":        {"0::/a:b\n", []string{v2 + "/a:b/memory.max: 900"}, 900},
		"out of sight": {"0::/../../a\n", []string{v2 + "/memory.max: 900"}, 900}, // another namespace's group
		"no slash":     {"0::a\n", []string{v2 + "/memory.max: 900"}, 900},
		"no path":      {"0::\n", []string{v2 + "/memory.max: 900"}, 900},
		"old": {"4:memory:/a\n",
			[]string{v1 + "/a/memory.limit_in_bytes: 900", v1 + "/memory.limit_in_bytes: 890"}, 890},
		"old, several": {"4:cpu,memory,pids:/a\n", []string{v1 + "/a/memory.limit_in_bytes: 900"}, 900},
		"old, others":  {"4:cpu,memory2:/a\n5:name=memory:/a", []string{v1 + "/a/memory.limit_in_bytes: 900"}, Unknown},
		"both, old": {"4:memory:/a\n0::/\n", []string{v1 + "/a/memory.limit_in_bytes: 900", v2 + "/memory.max: 950"},
			900},
		"both, new": {"4:memory:/a\n0::/\n", []string{v1 + "/a/memory.limit_in_bytes: 950", v2 + "/memory.max: 900"},
			900},
		"new first": {"0::/\n4:memory:/a\n", []string{v1 + "/a/memory.limit_in_bytes: 950", v2 + "/memory.max: 900"},
			900},
		"bad lines": {"\n0\n4:memory\n0::/a", []string{v2 + "/a/memory.max: 900", v2 + "/memory.max: max"}, 900},
		"cache": {"0::/a\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 880", v2 +
			"/a/memory.stat: " +
			"anon 500\nfile 370\ninactive_anon 500\nactive_anon 3\ninactive_file 300\nactive_file 70\nshmem 9\n"}, 390},
		"more cache than usage": {"0::/a\n", []string{v2 + "/a/memory.max: 900", v2 + "/a/memory.current: 80",
			v2 + "/a/memory.stat: inactive_file 100\n"}, 900}, // the numbers are read one after the other
		"old cache": {"4:memory:/a\n", []string{v1 + "/a/memory.limit_in_bytes: 900", v1 +
			"/a/memory.usage_in_bytes: 880", v1 +
			"/a/memory.stat: inactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 40\n"}, 90},
	} {
		root := host(t, append(c.files, "proc/self/cgroup: "+c.groups))
		if got := group(root); got != c.want {
			t.Errorf("%s: %d bytes are left, want %d", name, got, c.want)
		}
	}
	if got := group(t.TempDir()); got != Unknown {
		t.Errorf("%d bytes are left where no group says so", got)
	}
}

// The least of the machine's memory and the group's limit counts, whichever it is.
func TestLeast(t *testing.T) {
	for kb, want := range map[string]int64{"3": 3 << 10, "5": 5000, "4": 4 << 10} {
		root := host(t, []string{"proc/meminfo: MemAvailable: " + kb + " kB\n", "proc/self/cgroup: 0::/\n",
			"sys/fs/cgroup/memory.max: 5000\n"})
		if got := least(root); got != want {
			t.Errorf("%s kB free and a limit of 5000: %d bytes", kb, got)
		}
	}
}

// What a limit of the address space leaves.
func TestRest(t *testing.T) {
	page := int64(os.Getpagesize())
	for _, c := range []struct {
		limit uint64
		statm string
		want  int64
	}{
		{1 << 40, "1000 200 300 1 0 40 0\n", 1<<40 - 1000*page - 512<<20},
		{uint64(1000*page) + 512<<20 + 1, "1000 2", 1},
		{uint64(1000*page) + 512<<20, "1000 2", 0},
		{1 << 20, "1000 2", 0},
		{0, "1000 2", 0},
		{Unknown / 2, "0 2", Unknown/2 - 512<<20},
		{Unknown/2 + 1, "0 2", Unknown},
		{unix.RLIM_INFINITY, "1000 2", Unknown},
		{1 << 40, "", Unknown},
		{1 << 40, "many 2", Unknown},
	} {
		if got := rest(c.limit, c.statm); got != c.want {
			t.Errorf("limit %d with %q: %d bytes, want %d", c.limit, c.statm, got, c.want)
		}
	}
}

// The limit of this process's own address space is the one that counts.
func TestSpace(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &old); err != nil || old.Cur != unix.RLIM_INFINITY {
		t.Skip("the address space is limited already")
	}
	if got := space(); got != Unknown || Cramped() {
		t.Errorf("%d bytes are left without a limit", got)
	}
	const limit = 1 << 46
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		t.Skip(err)
	}
	got, all, cramped := space(), least(t.TempDir()), Cramped()
	if err := unix.Setrlimit(unix.RLIMIT_AS, &old); err != nil {
		t.Fatal(err)
	}
	want := rest(limit, text("/", "proc/self/statm"))
	if got < want-1<<28 || got > want+1<<28 || all < want-1<<28 || all > want+1<<28 || cramped {
		t.Errorf("%d and %d bytes are left of %d, want about %d; cramped: %v", got, all, int64(limit), want, cramped)
	}
}
