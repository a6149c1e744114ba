package dist_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hosts makes three network namespaces, which are machines as far as the network goes. The first has a link to each of
// the others: 10.213.1.0/30 on "left" to the second, 10.213.2.0/30 on "right" to the third.
func hosts(t *testing.T) (names [3]string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ip := func(words string) error {
		out, err := exec.Command("ip", strings.Fields(words)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", words, err, out)
		}
		return nil
	}
	for i := range names {
		names[i] = fmt.Sprintf("antiphase-%d-%d", os.Getpid(), i)
		if err := ip("netns add " + names[i]); err != nil {
			t.Skip("no network namespaces here: ", err)
		}
		t.Cleanup(func() { _ = ip("netns del " + names[i]) })
	}
	a, b, c := names[0], names[1], names[2]
	for _, words := range []string{
		"-n " + a + " link add left type veth peer name back netns " + b, "-n " + a +
			" link add right type veth peer name back netns " + c,
		"-n " + a + " addr add 10.213.1.1/30 dev left", "-n " + b + " addr add 10.213.1.2/30 dev back",
		"-n " + a + " addr add 10.213.2.1/30 dev right", "-n " + c + " addr add 10.213.2.2/30 dev back",
		"-n " + a + " link set left up", "-n " + a + " link set right up", "-n " + a + " link set lo up", "-n " + b +
			" link set back up", "-n " + c + " link set back up",
	} {
		if err := ip(words); err != nil {
			t.Skip("no virtual links here: ", err)
		}
	}
	return names
}

// onHost is a child process in a namespace.
func onHost(t *testing.T, host, child string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("ip", "netns", "exec", host, self)
	cmd.Env = append(append(os.Environ(), childEnv+"="+child), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// Two ranks on two machines: they meet over the interface that was named, a third machine on another link of rank 0's
// finds nothing there, and when the link goes down both leave within the time-out and name each other.
func TestLinkDown(t *testing.T) {
	names := hosts(t)
	meet := t.TempDir()
	var ranks []*process
	for r := range 2 {
		cmd := onHost(t, names[r], "wait", "MEET=file://"+meet, "INTERFACE="+[]string{"left", "back"}[r],
			fmt.Sprintf("ANTIPHASE_RANK=%d", r), "ANTIPHASE_WORLD_SIZE=2")
		ranks = append(ranks, begin(t, cmd))
	}
	joined(t, ranks)
	notReached(t, names, meet)
	began := time.Now()
	if out, err := exec.Command("ip", "-n", names[1], "link", "set", "back", "down").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for r, p := range ranks {
		text, _ := io.ReadAll(p.lines)
		line := strings.TrimSpace(string(text))
		if err := p.cmd.Wait(); exitCode(err) != 75 || strings.Contains(line, "\n") ||
			!strings.Contains(line, "has given no sign for") ||
			!strings.Contains(line, fmt.Sprintf("a rank was lost: rank %d", 1-r)) {
			t.Errorf("rank %d: %v, %q", r, err, line)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the ranks left after %s", took)
	} else {
		t.Logf("link down: both ranks left after %s", took.Round(time.Millisecond))
	}
}

// notReached tries rank 0's port from the second and the third machine, by the addresses that each of them has of it.
func notReached(t *testing.T, names [3]string, meet string) {
	t.Helper()
	var card struct{ Addr string }
	b, err := os.ReadFile(filepath.Join(meet, "antiphase-rank-0.json"))
	if err != nil || json.Unmarshal(b, &card) != nil {
		t.Fatalf("%v: %s", err, b)
	}
	host, port, err := net.SplitHostPort(card.Addr)
	if err != nil || host != "10.213.1.1" {
		t.Fatalf("rank 0 listens on %q: %v", card.Addr, err)
	}
	for i, c := range []struct {
		host, addr string
		reach      bool
	}{{names[1], "10.213.1.1", true}, {names[2], "10.213.2.1", false}, {names[2], "10.213.1.1", false}} {
		out, err := onHost(t, c.host, "dial", "ADDR="+net.JoinHostPort(c.addr, port)).Output()
		if err != nil || (string(out) == "reached\n") != c.reach {
			t.Errorf("attempt %d, to %s: %q, %v; reached should be %v", i, c.addr, out, err, c.reach)
		}
	}
}
