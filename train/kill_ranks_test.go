//go:build linux

package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/optim"
)

// killRanks is set where the test binary runs as a rank to be killed: run folder, steps and layout.
const killRanks = "ANTIPHASE_TEST_KILL_RANKS"

// stages are the layouts that one run goes through, and the step that each ends at.
var stages = []struct {
	ranked
	steps int
}{{ranked{1, 1, false}, 6}, {ranked{4, 2, true}, 12}, {ranked{3, 1, true}, 18}, {ranked{1, 1, false}, 22}}

// wantedKills is how many ranks to kill; the stages grow with it.
func wantedKills() int {
	if n, err := strconv.Atoi(os.Getenv("ANTIPHASE_TEST_KILLS")); err == nil {
		return n
	}
	return 4
}

func endOf(stage int) int { return stages[stage].steps * max(1, wantedKills()/3) }

// jobRanks is a job's member as train needs it.
type jobRanks struct {
	dist.Comm
	job *dist.Job
}

func (r jobRanks) Agree(tag string, facts map[string]string) error { return r.job.Agree(tag, facts) }
func (r jobRanks) Exchange(tag string, v []byte) ([][]byte, error) { return r.job.Exchange(tag, v) }
func (r jobRanks) Group(color int) (optim.Ranks, error)            { return r.Split(color) }

func init() { children[killRanks] = victimRank }

// stageSets of a stage: every step is saved.
func stageSets(steps int) []string {
	return []string{"train.batch=12", "train.micro_batch=3", "train.save_every=1", "optim.schedule=constant",
		fmt.Sprint("train.steps=", steps)}
}

// victimRank trains as one rank of an MPI job, as a layout that the environment names.
func victimRank(spec string) error {
	fields := strings.Split(spec, "|")
	dir, stage := fields[0], 0
	if _, err := fmt.Sscan(fields[1], &stage); err != nil {
		return err
	}
	s := stages[stage]
	l, err := dist.Detect(dist.NoFlags(), os.Getenv)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("pid-", l.Rank)), []byte(strconv.Itoa(os.Getpid())),
		0o644); err != nil {
		return err
	}
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	opt := Options{Dir: filepath.Join(dir, "run"), Device: d, Shard: s.shard, Tensor: s.tensor}
	var job *dist.Job
	if s.n > 1 {
		c, err := dist.OpenMPI(l, dist.MPIOptions{})
		if err != nil {
			return err
		}
		if job, err = dist.Join(context.Background(), l,
			dist.Options{Via: c, OnLost: func(error) { os.Exit(75) }}); err != nil {
			return err
		}
		opt.Ranks = jobRanks{job.Watch(c), job}
	}
	if _, err := Run(context.Background(), nano(&testing.B{}, "diff", stageSets(endOf(stage))...), opt); err != nil {
		return err
	}
	if job != nil {
		if err := opt.Ranks.(jobRanks).Close(); err != nil {
			return err
		}
		return job.Close()
	}
	return nil
}

// startStage runs a stage under mpirun.
func startStage(t *testing.T, dir string, stage int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca",
		"btl_vader_single_copy_mechanism", "none", "-np", fmt.Sprint(stages[stage].n), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", killRanks, dir, stage))
	return cmd
}

// kill -9 of a random rank at random moments of a run that goes from one rank to four, three and one again: every
// restart continues, and the weights are those of a run that was not broken.
func TestKillRanks(t *testing.T) {
	if _, err := exec.LookPath("mpirun.openmpi"); err != nil {
		t.Skip("Open MPI is not installed (Debian: openmpi-bin)")
	}
	if testing.Short() {
		t.Skip("starts mpirun a dozen times")
	}
	kills := wantedKills()
	whole := t.TempDir()
	for i := range stages {
		if out, err := startStage(t, whole, i).CombinedOutput(); err != nil {
			t.Fatalf("unbroken, stage %d: %v\n%s", i, err, out)
		}
	}
	dir := t.TempDir()
	g := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	killed, hit := 0, map[int]int{}
	for i := range stages {
		share := kills * (i + 1) / len(stages) // this many by the end of the stage
		for finished := false; !finished; {
			cmd := startStage(t, dir, i)
			var said strings.Builder
			cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			if killed < share {
				killed += killOne(t, g, dir, stages[i].n, (endOf(i)-stepsOf(t, dir))/(share-killed+1), hit)
			}
			err := ended(t, cmd, done, dir, stages[i].n)
			finished = err == nil && killed >= share || err == nil && stepsOf(t, dir) >= endOf(i)
			if err != nil && killed == 0 {
				t.Fatalf("stage %d: %v\n%s", i, err, said.String())
			}
		}
	}
	t.Logf("killed %d ranks, by rank: %v", killed, hit)
	if killed < kills {
		t.Errorf("the run ended after %d of %d kills", killed, kills)
	}
	last := fmt.Sprintf("step-%08d", endOf(len(stages)-1))
	got, want := files(t, filepath.Join(dir, "run", "checkpoints", last)),
		files(t, filepath.Join(whole, "run", "checkpoints", last))
	sameFiles(t, got, want)
}

// ended waits for mpirun. Open MPI 4.1.4's can wait forever for a rank that died inside MPI_Init, when all of them are
// gone: then it is killed too. Ranks that are still there after three minutes are a fault.
func ended(t *testing.T, cmd *exec.Cmd, done <-chan error, dir string, n int) error {
	t.Helper()
	for range 1800 {
		select {
		case err := <-done:
			return err
		case <-time.After(100 * time.Millisecond):
		}
		if lives := alive(dir, n); lives == 0 {
			select {
			case err := <-done:
				return err
			case <-time.After(5 * time.Second):
			}
			if alive(dir, n) > 0 {
				continue // they had only not begun
			}
			t.Log("every rank has left, and mpirun has not: killing it")
			_ = cmd.Process.Kill()
			return <-done
		}
	}
	_ = cmd.Process.Kill()
	<-done
	t.Fatal("ranks hang")
	return nil
}

// alive counts the ranks that run.
func alive(dir string, n int) (count int) {
	for rank := range n {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("pid-", rank)))
		if err != nil {
			continue
		}
		if name, err := os.Readlink("/proc/" + string(b) + "/exe"); err == nil &&
			filepath.Base(name) == filepath.Base(os.Args[0]) {
			count++
		}
	}
	return count
}

// killOne waits a random moment, and no longer than steps more are saved, so that the stage does not end before its
// share of kills, and kills one of n ranks; it gives 1 where there was one to kill.
func killOne(t *testing.T, g *rand.Rand, dir string, n, steps int, hit map[int]int) int {
	t.Helper()
	begun := stepsOf(t, dir)
	for at := time.Now().Add(time.Duration(250+g.IntN(3000)) * time.Millisecond); time.Now().Before(at); {
		if time.Sleep(time.Duration(1+g.IntN(9)) * time.Millisecond); stepsOf(t, dir) >= begun+steps {
			break
		}
	}
	rank := g.IntN(n)
	b, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("pid-", rank)))
	pid, perr := strconv.Atoi(string(b))
	if err != nil || perr != nil {
		return 0
	}
	// A process of an earlier start has ended; its number may be another's by now.
	if name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil ||
		filepath.Base(name) != filepath.Base(os.Args[0]) || pid == os.Getpid() {
		return 0
	}
	if syscall.Kill(pid, syscall.SIGKILL) != nil {
		return 0
	}
	hit[rank]++
	return 1
}

// stepsOf is the newest step that is saved.
func stepsOf(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "run", "checkpoints", "step-????????"))
	if err != nil || len(found) == 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(found[len(found)-1]), "step-"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
