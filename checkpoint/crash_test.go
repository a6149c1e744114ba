package checkpoint

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// scenario is a Save to crash in: what is there before, and what a reader may find.
type scenario struct {
	name    string
	opt     Options
	before  func(t testing.TB, mem *vfstest.Mem)
	old     string // the state to find when the new one is not there, "" for none
	count   int    // how many checkpoints are there before
	damaged bool   // one of them is damaged
}

const (
	newState = "8/new"
	theEnd   = "the end" // when Save has returned
)

var scenarios = []scenario{
	{"first checkpoint", Options{}, func(testing.TB, *vfstest.Mem) {}, "", 0, false},
	{"next checkpoint", Options{}, func(t testing.TB, mem *vfstest.Mem) {
		save(t, open(t, mem, Options{}), 4, "old")
	}, "4/old", 1, false},
	{"the old ones deleted", Options{KeepLast: 1}, func(t testing.TB, mem *vfstest.Mem) {
		save(t, open(t, mem, Options{}), 2, "old")
		save(t, open(t, mem, Options{}), 4, "old")
	}, "4/old", 2, false},
	{"the only one replaced", Options{}, func(t testing.TB, mem *vfstest.Mem) {
		save(t, open(t, mem, Options{}), 8, "old")
	}, "8/old", 1, false},
	{"a damaged one replaced", Options{}, func(t testing.TB, mem *vfstest.Mem) {
		s := open(t, mem, Options{})
		save(t, s, 4, "old")
		save(t, s, 8, "old")
		replace(t, mem, filepath.Join(s.path(8), "state.json"), []byte("{}"))
	}, "4/old", 2, true},
}

// after gives the file systems a crash now may leave: all as it is (the process died), only what was synced, and luck.
func after(mem *vfstest.Mem, op, draws int) []*vfstest.Mem {
	out := []*vfstest.Mem{mem.Clone(), mem.Crash(nil)}
	rng := rand.New(rand.NewPCG(8, uint64(op)))
	for range draws {
		out = append(out, mem.Crash(rng))
	}
	return out
}

// TestCrashAnywhere crashes before each operation of a Save and after it, and opens every file system that may be left:
// the state found is the old one or the new one, whole; the new one once Save has made it durable; and Save works
// again.
func TestCrashAnywhere(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			mem := vfstest.NewMem()
			sc.before(t, mem)
			mem = mem.Clone()
			tried, again, end := seen{}, seen{}, seen{}
			renamed, durable := false, false
			fsys := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
				for _, left := range after(mem, op.Index, 60) {
					if tried.first(left, durable) {
						recover8(t, sc, left, durable, op.String(), again)
					}
				}
				durable = durable || renamed // the operation after the SyncDir that follows the rename
				renamed = renamed || op.Kind == "syncdir" && hasStep8(mem)
				return nil
			}}
			s := open(t, fsys, sc.opt)
			save(t, s, 8, "new")
			for _, left := range after(mem, fsys.Count(), 60) {
				if end.first(left, true) {
					recover8(t, sc, left, true, theEnd, again)
				}
			}
			t.Logf("%d operations, %d different file systems left", fsys.Count(), len(tried))
		})
	}
}

// seen remembers file systems already tried: most crashes leave the same few.
type seen map[string]bool

func (s seen) first(mem *vfstest.Mem, durable bool) bool {
	key := fmt.Sprint(durable, mem)
	before := s[key]
	s[key] = true
	return !before
}

// hasStep8 reports whether the new checkpoint bears its final name.
func hasStep8(mem *vfstest.Mem) bool {
	f, err := mem.Open(filepath.Join(run, folderName, "step-00000008", "state.json"))
	if err != nil {
		return false
	}
	line, _ := bufio.NewReader(f).ReadString('\n')
	return strings.Contains(line, "new")
}

// recover8 does what a restarted run does, itself crashed at each of its operations.
func recover8(t *testing.T, sc scenario, mem *vfstest.Mem, durable bool, when string, tried seen) {
	t.Helper()
	again := mem.Clone()
	fsys := &vfstest.Faulty{FS: again, Hook: func(op vfstest.Op) error {
		for _, left := range after(again, op.Index, 2) {
			if tried.first(left, durable) {
				found(t, sc, left, durable, when+", then "+op.String())
			}
		}
		return nil
	}}
	if _, err := Open(run, Options{FS: fsys}); err != nil {
		t.Fatal(err)
	}
	s := found(t, sc, again, durable, when)
	names, err := again.ReadDir(s.Dir())
	if err != nil || slices.ContainsFunc(names, leftover.MatchString) {
		t.Fatalf("crash before %s: names %q (%v) after Open", when, names, err)
	}
	save(t, s, 8, "new")
	if c, err := s.Latest(nil); err != nil || identity(t, again, c, "new") != newState {
		t.Fatalf("crash before %s: saved again, Latest gives %+v, %v", when, c, err)
	}
}

func found(t *testing.T, sc scenario, mem *vfstest.Mem, durable bool, when string) *Store {
	t.Helper()
	s := open(t, mem, sc.opt)
	warned := ""
	c, err := s.Latest(func(w string) { warned += w })
	got := ""
	if err == nil {
		got = identity(t, mem, c, "old", "new")
	}
	if got != newState && (durable || got != sc.old) {
		t.Fatalf("crash before %s: found %q (%v), want %q or, if not yet durable (%v), %q", when, got, err, newState,
			!durable, sc.old)
	}
	if warned != "" && !sc.damaged {
		t.Fatalf("crash before %s: a reader was told of damage: %s", when, warned)
	}
	checkRest(t, sc, s, mem, got == newState, when)
	return s
}

// checkRest: every folder with a checkpoint's name is whole, none was deleted before the new one was there, and
// `latest` names one that exists.
func checkRest(t *testing.T, sc scenario, s *Store, mem *vfstest.Mem, isNew bool, when string) {
	t.Helper()
	steps, err := s.Steps()
	if err != nil || !isNew && len(steps) < sc.count {
		t.Fatalf("crash before %s: only steps %d of %d are left (%v)", when, steps, sc.count, err)
	}
	for _, step := range steps {
		if _, err := s.At(step); err != nil && !sc.damaged {
			t.Fatalf("crash before %s: %v", when, err)
		}
	}
	path := filepath.Join(s.Dir(), latestName)
	if _, err := mem.Stat(path); err != nil {
		if sc.count > 0 {
			t.Fatalf("crash before %s: %v", when, err)
		}
		return
	}
	name := string(read(t, mem, path))
	if _, err := mem.Stat(filepath.Join(s.Dir(), strings.TrimSpace(name))); err != nil || when == theEnd &&
		name != "step-00000008\n" {
		t.Fatalf("crash before %s: latest names %q: %v", when, name, err)
	}
}

// killDir makes this test binary a process that saves checkpoints there for ever.
const killDir = "CHECKPOINT_TEST_KILL"

func TestMain(m *testing.M) {
	dir := os.Getenv(killDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := saveForever(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func saveForever(dir string) error {
	s, err := Open(dir, Options{KeepLast: 2})
	if err != nil {
		return err
	}
	step := int64(0)
	if c, err := s.Latest(nil); err == nil {
		step = c.Step
	}
	for fmt.Println("start"); ; {
		step++
		if err := s.Save(step, state(step, "a")); err != nil {
			return err
		}
	}
}

// TestKill kills a saving process on the real file system again and again: never a step back, never a damaged one.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	last := int64(0)
	for i := 0; i < 12 || i < 200 && last == 0; i++ { // on a busy machine a save may take longer than that
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "start\n" {
			t.Fatalf("the child said %q", line)
		}
		time.Sleep(time.Duration(5+rand.IntN(60+10*i)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // "signal: killed"
		s, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Latest(func(w string) { t.Errorf("kill %d: %s", i, w) })
		if err != nil {
			if last == 0 {
				continue // killed before the first save
			}
			t.Fatalf("kill %d: %v", i, err)
		}
		if c.Step < last || identity(t, vfs.OS{}, c, "a") != fmt.Sprintf("%d/a", c.Step) {
			t.Fatalf("kill %d: step %d after %d", i, c.Step, last)
		}
		last = c.Step
	}
	if last == 0 {
		t.Error("no save ever finished")
	}
	t.Logf("reached step %d", last)
}
