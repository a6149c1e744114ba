package dist

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// local are options of ranks on this machine. Nobody counts as lost because the machine is busy.
func local(meet string) Options {
	return Options{Rendezvous: meet, Interface: "127.0.0.1", Secret: []byte("secret"), JoinTimeout: time.Minute,
		PeerTimeout: DefaultPeer}
}

func rank(r, world int) Launch { return Launch{Source: "flags", Rank: r, World: world} }

var ports atomic.Int64

// freePort is an address without a listener. Systems choose higher ports for connections and for port 0, so that nobody
// takes it before the test does.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+(int64(os.Getpid())*50+ports.Add(1))%20_000)
		if ln, err := net.Listen("tcp", addr); err == nil {
			_ = ln.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

// joinAll joins all ranks of a world at once; option changes a rank's own.
func joinAll(t *testing.T, meet string, world int, change func(r int, o *Options)) ([]*Job, []error) {
	t.Helper()
	jobs, errs := make([]*Job, world), make([]error, world)
	var wg sync.WaitGroup
	for r := range world {
		wg.Go(func() {
			o := local(meet)
			if change != nil {
				change(r, &o)
			}
			jobs[r], errs[r] = Join(context.Background(), rank(r, world), o)
		})
	}
	wg.Wait()
	return jobs, errs
}

func closeAll(t *testing.T, jobs []*Job) {
	t.Helper()
	var wg sync.WaitGroup
	for r, j := range jobs {
		wg.Go(func() {
			if err := j.Close(); err != nil {
				t.Errorf("rank %d closes: %v", r, err)
			}
		})
	}
	wg.Wait()
}

// Ranks meet by address and by folder, exchange values, and leave no files.
func TestJoin(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	for _, meet := range []string{"tcp://" + freePort(t), "file://" + dir} {
		for _, world := range []int{1, 2, 5} {
			jobs, errs := joinAll(t, meet, world, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%s, %d ranks: %v", meet, world, err)
			}
			var wg sync.WaitGroup
			for r, j := range jobs {
				wg.Go(func() {
					for _, tag := range []string{"a", "b"} {
						all, err := j.Exchange(tag, []byte{byte(r), tag[0]})
						for i, v := range all {
							if v[0] != byte(i) || v[1] != tag[0] {
								t.Errorf("rank %d got %v", r, all)
							}
						}
						if err != nil || len(all) != world {
							t.Errorf("rank %d: %v, %v", r, all, err)
						}
					}
					if err := j.Agree("facts", map[string]string{"recipe": "1", "data": "2"}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			closeAll(t, jobs)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left in the folder", left)
	}
}

// A rank with another secret is refused at once; the others say that somebody was turned away.
func TestWrongSecret(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, err := listen("127.0.0.1:0", []byte("secret"), 2, local(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	o := local("tcp://" + s.addr())
	o.Secret = []byte("another")
	if _, err := Join(t.Context(), rank(1, 2), o); !errors.Is(err, errSecret) ||
		!strings.HasPrefix(err.Error(), "dist: rank 1 of 2 is refused at "+s.addr()+": ") {
		t.Errorf("rank 1: %v", err)
	}
	s.until(t, "the refusal", func() bool { return len(s.refused) > 0 })
	want := "of 2 ranks these never came: 0, 1; turned away: "
	if got := s.missing(); !strings.HasPrefix(got, want) || !strings.Contains(got, "secret") {
		t.Errorf("rank 0 says %q, want %s", got, want)
	}
}

// listener answers every connection in its own way until the test ends.
func listener(t *testing.T, answer func(net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			answer(c)
		}
	}()
	return ln.Addr().String()
}

// The listener must know the secret too: a rank sends nothing to one that accepts everything.
func TestFalseStore(t *testing.T) {
	addr := listener(t, func(c net.Conn) {
		_, _ = c.Write(append([]byte(greeting), make([]byte, nonceSize)...))
		_, _ = c.Read(make([]byte, 64))
		_, _ = c.Write(append([]byte{verdictYes}, make([]byte, 32)...))
	})
	if _, err := Join(context.Background(), rank(1, 2), local("tcp://"+addr)); !errors.Is(err, errSecret) {
		t.Errorf("got %v", err)
	}
}

// Ranks do not meet at an address without a secret, and an address names one interface.
func TestNeedsSecretAndInterface(t *testing.T) {
	for meet, want := range map[string]string{
		"tcp://127.0.0.1:7000": "ANTIPHASE_SECRET", "tcp://:7000": "every interface",
		"tcp://0.0.0.0:7000": "every interface", "tcp://[::]:7000": "every interface",
		"tcp://host": "host:port", "tcp://host:": "host:port", "tcp://host:0": "host:port",
		"http://a:1":      "tcp://host:port",
		"file://relative": "file:///",
	} {
		o := Options{Rendezvous: meet, JoinTimeout: time.Second}
		if strings.Contains(want, "interface") {
			o.Secret = []byte("x")
		}
		if _, err := Join(context.Background(), rank(0, 2), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", meet, err, want)
		}
	}
	if _, err := Join(context.Background(), rank(0, 2),
		Options{Rendezvous: "file://" + t.TempDir(), JoinTimeout: time.Second}); err == nil ||
		!strings.Contains(err.Error(), "--interface") {
		t.Errorf("a folder for several machines: %v", err)
	}
	if _, err := Join(context.Background(), rank(0, 2), Options{}); err == nil || !strings.Contains(err.Error(),
		"--rendezvous") {
		t.Errorf("no place to meet: %v", err)
	}
}

// The store listens on the interface that was named and on no other: another address of the same machine cannot
// reach it.
func TestOneInterface(t *testing.T) {
	s, err := listen("127.0.0.1:0", []byte("x"), 2, local(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	_, port, _ := net.SplitHostPort(s.addr())
	others := []string{"127.0.0.2"}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			others = append(others, n.IP.String())
		}
	}
	for _, host := range others {
		if c, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), time.Second); err == nil {
			c.Close()
			t.Errorf("%s reaches a store that listens on 127.0.0.1", host)
		}
	}
	if c, err := net.Dial("tcp", s.addr()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

// Rank 0 reports a port in use; the other ranks find something that is not a store.
func TestPortTaken(t *testing.T) {
	addr := listener(t, func(c net.Conn) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.2p1 Debian-2, and a long line of other things\r\n"))
		_ = c.Close()
	})
	_, errs := joinAll(t, "tcp://"+addr, 2, nil)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "address already in use") {
		t.Errorf("rank 0: %v", errs[0])
	}
	if !errors.Is(errs[1], errNotStore) {
		t.Errorf("rank 1: %v", errs[1])
	}
}

// A process that comes when all are there, or claims another's rank, is refused; the job continues.
func TestLateJoiner(t *testing.T) {
	defer goleak.VerifyNone(t)
	meet := "tcp://" + freePort(t)
	jobs, errs := joinAll(t, meet, 3, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	_, err := Join(context.Background(), rank(1, 3), local(meet))
	if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), "too late") {
		t.Errorf("got %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	for r, j := range jobs {
		if j.Err() != nil {
			t.Errorf("rank %d: %v", r, j.Err())
		}
	}
	closeAll(t, jobs)
}

func TestWrongWorld(t *testing.T) {
	defer goleak.VerifyNone(t)
	meet := "tcp://" + freePort(t)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for r := range 2 {
		wg.Go(func() { _, errs[r] = Join(context.Background(), rank(r, 2+r), local(meet)) })
	}
	wg.Wait()
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "was told of 3 ranks, rank 0 of 2") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Ranks that never come: the others wait as long as they were told, and rank 0 names the missing.
func TestNobodyComes(t *testing.T) {
	defer goleak.VerifyNone(t)
	for r, want := range map[int]string{
		0: "dist: rank 0 of 3 waited %s at tcp://%s: of 3 ranks these never came: 1, 2",
		2: "dist: rank 2 of 3 waited %s and did not reach rank 0 at tcp://%s"} {
		for wait := 300 * time.Millisecond; ; wait *= 3 {
			at := freePort(t)
			o := local("tcp://" + at)
			o.JoinTimeout = wait
			_, err := Join(context.Background(), rank(r, 3), o)
			if want := fmt.Sprintf(want, wait, at); err != nil && strings.HasPrefix(err.Error(), want) {
				break
			} else if wait > 20*time.Second { // a busy machine needs time to open a store and to join it
				t.Errorf("rank %d: %v, want %q", r, err, want)
				break
			}
		}
	}
}
