package dist

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"antiphase/tensor"
)

// Where ranks meet, by what is known: what was asked for, then MPI, then a private folder on one machine, then the
// launcher's address.
func TestPlace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	secret := []byte("s")
	via := &carrier{}
	for _, c := range []struct {
		l    Launch
		o    Options
		want string // the beginning of the place, or of the error after !
	}{
		{Launch{World: 2, LocalSize: 2, Job: "j", Master: "m:1"},
			Options{Rendezvous: "tcp://h:7", Secret: secret, Via: via}, "tcp://h:7"},
		{Launch{World: 2, LocalSize: 2, Job: "j", Master: "m:1"}, Options{Rendezvous: "file:///folder", Via: via},
			"file:///folder"},
		{Launch{World: 2, LocalSize: 2, Job: "j", Master: "m:1"}, Options{Via: via, Secret: secret}, "mpi"},
		{Launch{World: 2, LocalSize: 2, Job: "j", Master: "m:1"}, Options{Secret: secret}, "file://" +
			os.Getenv("TMPDIR")},
		{Launch{World: 2, LocalSize: 1, Job: "j", Master: "m:1"}, Options{Secret: secret}, "tcp://m:1"},
		{Launch{World: 2, LocalSize: 2, Master: "m:1"}, Options{Secret: secret}, "tcp://m:1"},
		{Launch{World: 2, LocalSize: 1, Master: "m:1"}, Options{},
			"!dist: ranks that meet at m:1 need a common secret"},
		{Launch{World: 2, LocalSize: 1}, Options{Via: via}, "!dist: 2 ranks on several machines: name the interface"},
		{Launch{World: 2, LocalSize: 1}, Options{Rendezvous: "file:///folder"},
			"!dist: 2 ranks on several machines: name the interface"},
		{Launch{World: 2, LocalSize: 2}, Options{Rendezvous: "nfs:///folder"},
			`!dist: rendezvous "nfs:///folder": want tcp://`},
		{Launch{World: 2, LocalSize: 2}, Options{Rendezvous: "file://folder"},
			`!dist: rendezvous "file://folder": want tcp://`},
		{Launch{World: 2, LocalSize: 2}, Options{Rendezvous: "/folder"}, `!dist: rendezvous "/folder": want tcp://`},
		{Launch{Source: "flags", Rank: 1, World: 2}, Options{Secret: secret},
			"!dist: flags says rank 1 of 2, but not where the ranks meet"},
	} {
		if runtime.GOOS == "windows" && strings.Contains(c.want, "file:") {
			continue
		}
		got, err := Place(c.l, c.o)
		if bad, refused := strings.CutPrefix(c.want, "!"); refused &&
			(err == nil || !strings.HasPrefix(err.Error(), bad)) || !refused &&
			(err != nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%+v: %q, %v; want %s", c.l, got, err, c.want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	seen := map[string]bool{}
	for _, l := range []Launch{{Source: "a", Job: "1"}, {Source: "a", Job: "2"}, {Source: "b", Job: "1"}} {
		dir, err := privateFolder(l)
		again, _ := privateFolder(l)
		if err != nil || again != dir || seen[dir] || len(filepath.Base(dir)) != 2*jobKey {
			t.Errorf("%+v: %s, then %s, %v", l, dir, again, err)
		}
		seen[dir] = true
	}
}

func TestBindAddress(t *testing.T) {
	one, two := Launch{World: 2, LocalSize: 2}, Launch{World: 2, LocalSize: 1}
	for name, want := range map[string]string{"": "127.0.0.1:0", "10.1.2.3": "10.1.2.3:0", "::1": "[::1]:0",
		"0.0.0.0": "", "::": "", "no-such-interface": ""} {
		if got, err := bindAddress(one, name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := bindAddress(two, ""); err == nil {
		t.Errorf("several machines: %q", got)
	}
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list { // each by its first address that others can use without a zone
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		want := ""
		for _, a := range addrs {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && want == "" && !ip.IsLinkLocalUnicast() {
				want = net.JoinHostPort(ip.String(), "0")
			}
		}
		if got, err := bindAddress(two, i.Name); got != want || (err == nil) != (want != "") {
			t.Errorf("interface %s of %v: %q, %v; want %q", i.Name, addrs, got, err, want)
		}
	}
}

// A card is found as it was written, by this user alone, and goes with its folder; what is not a card is looked at
// again.
func TestCards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "folder")
	f := &folder{dir: dir, at: "127.0.0.1:0", own: true}
	if _, _, again, err := f.find(); err == nil || !again ||
		!strings.Contains(err.Error(), "rank 0 has left no address in "+dir+" yet") {
		t.Errorf("no card: again %v, %v", again, err)
	}
	addr, secret, err := f.bind()
	if err != nil || addr != "127.0.0.1:0" || len(secret) != 32 || bytes.Equal(secret, freshSecret()) {
		t.Fatalf("%q, %x, %v", addr, secret, err)
	}
	if err := f.publish("h:1", secret); err != nil {
		t.Fatal(err)
	}
	if err := f.publish("h:2", secret); err != nil { // over the old one
		t.Fatal(err)
	}
	if addr, got, again, err := f.find(); err != nil || addr != "h:2" || !bytes.Equal(got, secret) || !again {
		t.Errorf("%q, %x, again %v, %v", addr, got, again, err)
	}
	path := filepath.Join(dir, cardName)
	if st, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"", "{", `{"addr":"h:1"}`, `{"addr":5,"secret":"c2Vj"}`, `[]`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, again, err := f.find(); err == nil || !again || !strings.Contains(err.Error(), "is not an address") {
			t.Errorf("%q: again %v, %v", text, again, err)
		}
	}
	f.close()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	shared := t.TempDir()
	g := &folder{dir: shared}
	if err := g.publish("h:1", secret); err != nil {
		t.Fatal(err)
	}
	g.close()
	if list, err := os.ReadDir(shared); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	x := &fixed{"h:1", secret}
	if addr, got, err := x.bind(); addr != "h:1" || !bytes.Equal(got, secret) || err != nil {
		t.Error(addr, err)
	}
	if addr, got, again, err := x.find(); addr != "h:1" || !bytes.Equal(got, secret) || again || err != nil {
		t.Error(addr, again, err)
	}
}

// carrier is an engine that carries what rank 0 broadcasts to the next one that asks.
type carrier struct {
	Comm
	rank  int
	held  []byte
	calls int
	err   error
}

func (c *carrier) Rank() int { return c.rank }
func (c *carrier) Broadcast(x tensor.Tensor, root int) error {
	if c.calls++; root != 0 {
		return errors.New("another root")
	}
	n := x.Len() * x.Type.Size()
	if c.rank == 0 {
		c.held = bytes.Clone(x.Buf.Host[:n])
	} else {
		copy(x.Buf.Host[:n], c.held)
	}
	return c.err
}

// An engine that connects by itself carries rank 0's address and secret, once.
func TestThrough(t *testing.T) {
	c := &carrier{}
	first := &through{comm: c, at: "127.0.0.1:0"}
	addr, secret, err := first.bind()
	if err != nil || addr != "127.0.0.1:0" || len(secret) != 32 {
		t.Fatal(addr, err)
	}
	if err := first.publish("h:9", secret); err != nil {
		t.Fatal(err)
	}
	if addr, got, again, err := first.find(); addr != "h:9" || !bytes.Equal(got, secret) || again || err != nil ||
		c.calls != 1 {
		t.Errorf("%q, again %v, %v, %d broadcasts", addr, again, err, c.calls)
	}
	c.rank = 1
	second := &through{comm: c}
	for range 2 {
		if addr, got, again, err := second.find(); addr != "h:9" || !bytes.Equal(got, secret) || again || err != nil ||
			c.calls != 2 {
			t.Errorf("%q, again %v, %v, %d broadcasts", addr, again, err, c.calls)
		}
	}
	c.err = errors.New("lost")
	if _, _, again, err := (&through{comm: c}).find(); !errors.Is(err, c.err) || again {
		t.Errorf("again %v, %v", again, err)
	}
}

// Where rank 0 listens, by the kind of place: on the interface that was named, on this machine alone, or as agreed.
func TestWhereRankZeroListens(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	secret := []byte("s")
	local, wide := Launch{World: 2, LocalSize: 2, Job: "j"}, Launch{World: 2, LocalSize: 1, Master: "m:1"}
	shared := "file://" + filepath.ToSlash(filepath.Join(t.TempDir(), "shared"))
	for _, c := range []struct {
		l    Launch
		o    Options
		want string
	}{
		{local, Options{Secret: secret}, "127.0.0.1:0"},
		{local, Options{Secret: secret, Interface: "10.1.2.3"}, "127.0.0.1:0"},
		{local, Options{Rendezvous: shared}, "127.0.0.1:0"},
		{local, Options{Rendezvous: shared, Interface: "10.1.2.3"}, "10.1.2.3:0"},
		{wide, Options{Rendezvous: shared, Interface: "10.1.2.3"}, "10.1.2.3:0"},
		{local, Options{Via: &carrier{}}, "127.0.0.1:0"},
		{wide, Options{Via: &carrier{}, Interface: "10.1.2.3"}, "10.1.2.3:0"},
		{wide, Options{Secret: secret, Interface: "10.1.2.3"}, "m:1"},
		{wide, Options{Rendezvous: "tcp://h:7", Secret: secret}, "h:7"},
	} {
		if runtime.GOOS == "windows" && (strings.HasPrefix(c.o.Rendezvous, "file:") || c.want == "127.0.0.1:0") {
			continue
		}
		m, err := meetingOf(c.l, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if at, got, err := m.bind(); err != nil || at != c.want || len(got) == 0 {
			t.Errorf("%+v, %+v: listens on %q, %v; want %q", c.l, c.o, at, err, c.want)
		}
		m.close()
	}
}

// Old private folders go if they have the name of one and nothing but a card in them.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	key := strings.Repeat("a7", jobKey)
	for name, c := range map[string]struct {
		age  time.Duration
		file string
		left bool
	}{
		key: {leftover + time.Hour, cardName, false}, key[2:] + "00": {leftover + time.Hour, "", false}, key[2:] +
			"01": {leftover - time.Hour, cardName, true},
		key[2:]: {leftover + time.Hour, cardName, true}, key + "00": {leftover + time.Hour, "", true}, key[1:] +
			"x": {leftover + time.Hour, "", true}, key + "x": {leftover + time.Hour, "", true}, key +
			".b": {leftover + time.Hour, cardName, true}, key[2:] + "02": {leftover + time.Hour, "other", true},
	} {
		dir := filepath.Join(root, name)
		err := os.Mkdir(dir, 0o700)
		if c.file != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, c.file), nil, 0o600))
		}
		if err = errors.Join(err, os.Chtimes(dir, time.Time{}, time.Now().Add(-c.age))); err != nil {
			t.Fatal(err)
		}
		sweep(root)
		if _, err := os.Stat(dir); (err == nil) != c.left {
			t.Errorf("%s, %s old, with %q: %v", name, c.age, c.file, err)
		}
		if _, err := os.Stat(filepath.Join(dir, c.file)); (err == nil) != c.left {
			t.Errorf("%s, %s old: %q: %v", name, c.age, c.file, err)
		}
	}
	file := filepath.Join(root, key)
	err := os.WriteFile(file, nil, 0o600)
	if err = errors.Join(err, os.Chtimes(file, time.Time{}, time.Now().Add(-2*leftover))); err != nil {
		t.Fatal(err)
	}
	sweep(root)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a file with the name of a job: %v", err)
	}
}
