package dist

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"antiphase/tensor"
)

// meeting is how ranks find rank 0's store.
type meeting interface {
	// bind is the address that rank 0 listens on, and the secret of the job.
	bind() (addr string, secret []byte, err error)
	// publish makes it known to the other ranks.
	publish(addr string, secret []byte) error
	// find returns the address to connect to; again means that it may be stale, so find may be called again.
	find() (addr string, secret []byte, again bool, err error)
	// close cleans up on rank 0.
	close()
	String() string
}

// meetingOf chooses the rendezvous: the requested one, else MPI itself, else a private folder for ranks of one machine,
// else the launcher's address.
func meetingOf(l Launch, o Options) (meeting, error) {
	switch scheme, rest, _ := strings.Cut(o.Rendezvous, "://"); {
	case scheme == "file" && filepath.IsAbs(rest):
		addr, err := bindAddress(l, o.Interface)
		return &folder{dir: rest, at: addr}, err
	case scheme == "tcp":
		return newFixed(rest, o)
	case o.Rendezvous != "":
		return nil, fmt.Errorf("dist: rendezvous %q: want tcp://host:port or file:///folder/of/this/run", o.Rendezvous)
	case o.Via != nil:
		addr, err := bindAddress(l, o.Interface)
		return &through{comm: o.Via, at: addr}, err
	case l.Local() && l.Job != "":
		dir, err := privateFolder(l)
		return &folder{dir: dir, at: "127.0.0.1:0", own: true}, err
	case l.Master != "":
		return newFixed(l.Master, o)
	}
	return nil, fmt.Errorf("dist: %s says rank %d of %d, but not where the ranks meet: give --rendezvous "+
		"tcp://host:port or file:///shared/folder", l.Source, l.Rank, l.World)
}

// bindAddress is the address of the named interface, with any port. Ranks of one machine need no name.
func bindAddress(l Launch, name string) (string, error) {
	if name == "" {
		if l.Local() {
			return "127.0.0.1:0", nil
		}
		return "", fmt.Errorf(
			"dist: %d ranks on several machines: name the interface or address they reach each other "+
				"by (--interface)", l.World)
	}
	if ip := net.ParseIP(name); ip != nil && !ip.IsUnspecified() {
		return net.JoinHostPort(name, "0"), nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return "", fmt.Errorf("dist: interface %q: %w", name, err)
	}
	addrs, err := i.Addrs()
	if err != nil {
		return "", fmt.Errorf("dist: interface %q: %w", name, err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			return net.JoinHostPort(n.IP.String(), "0"), nil
		}
	}
	return "", fmt.Errorf("dist: interface %q has no address", name)
}

// fixed is an address and a secret that every rank was given.
type fixed struct {
	addr   string
	secret []byte
}

func newFixed(addr string, o Options) (*fixed, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" || port == "0" {
		return nil, fmt.Errorf("dist: rendezvous at %q: want host:port", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return nil, fmt.Errorf("dist: rendezvous at %q names every interface: name one", addr)
	}
	if len(o.Secret) == 0 {
		return nil, fmt.Errorf("dist: ranks that meet at %s need a common secret: set ANTIPHASE_SECRET, or "+
			"ANTIPHASE_SECRET_FILE to a file that holds it, on all of them", addr)
	}
	return &fixed{addr, o.Secret}, nil
}

func (f *fixed) bind() (string, []byte, error)       { return f.addr, f.secret, nil }
func (f *fixed) publish(string, []byte) error        { return nil }
func (f *fixed) find() (string, []byte, bool, error) { return f.addr, f.secret, false, nil }
func (f *fixed) close()                              {}
func (f *fixed) String() string                      { return "tcp://" + f.addr }

// folder is a directory that all ranks can see. Rank 0 writes its address and a new secret there, for this user only.
type folder struct {
	dir, at string
	own     bool // made for this job alone, see privateFolder
}

// card is what rank 0 writes there.
type card struct {
	Addr   string `json:"addr"`
	Secret []byte `json:"secret"`
}

const cardName = "antiphase-rank-0.json"

func (f *folder) bind() (string, []byte, error) {
	if f.own {
		sweep(filepath.Dir(f.dir))
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("dist: rendezvous folder: %w", err)
	}
	return f.at, freshSecret(), nil
}

func freshSecret() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return b
}

func (f *folder) publish(addr string, secret []byte) error {
	b, err := json.Marshal(card{addr, secret})
	if err != nil {
		return fmt.Errorf("dist: %w", err)
	}
	tmp, err := os.CreateTemp(f.dir, cardName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("dist: rendezvous folder: %w", err)
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(f.dir, cardName))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("dist: rendezvous folder: %w", err)
	}
	return nil
}

func (f *folder) find() (string, []byte, bool, error) {
	b, err := readOwn(filepath.Join(f.dir, cardName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, true, fmt.Errorf("rank 0 has left no address in %s yet", f.dir)
	}
	if err != nil {
		return "", nil, true, err
	}
	var c card
	if err := json.Unmarshal(b, &c); err != nil || len(c.Secret) == 0 {
		return "", nil, true, fmt.Errorf("%s is not an address", filepath.Join(f.dir, cardName))
	}
	return c.Addr, c.Secret, true, nil
}

func (f *folder) close() {
	_ = os.Remove(filepath.Join(f.dir, cardName))
	if f.own {
		_ = os.Remove(f.dir)
	}
}

func (f *folder) String() string { return "file://" + f.dir }

// readOwn reads a card. In a folder that others can write to it may be anything: only a regular file of this user
// counts.
func readOwn(path string) ([]byte, error) {
	file, err := openNow(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !private(info) {
		return nil, fmt.Errorf("%s is not a file of this user alone: somebody else may have put it there. If the file "+
			"system changes owners, use tcp://", path)
	}
	return io.ReadAll(io.LimitReader(file, cardRoom))
}

// cardRoom is more than a card takes.
const cardRoom = 4096

// leftover is the age at which a job's private folder is removed: its ranks have met, or have given up.
const leftover = 7 * 24 * time.Hour

// sweep removes the private folders that killed jobs left in root: those with a name that privateFolder gives, and with
// nothing but a card in them.
func sweep(root string) {
	list, _ := os.ReadDir(root) // what cannot be read is left alone
	for _, e := range list {
		info, err := e.Info()
		if name, herr := hex.DecodeString(e.Name()); err != nil || herr != nil || len(name) != jobKey || !e.IsDir() ||
			time.Since(info.ModTime()) <= leftover {
			continue
		}
		_ = os.Remove(filepath.Join(root, e.Name(), cardName))
		_ = os.Remove(filepath.Join(root, e.Name())) // fails if there is anything else
	}
}

// jobKey is the number of bytes of a job's hash in the name of its private folder.
const jobKey = 12

// privateFolder is a path under the temporary folder for this user and this job only.
func privateFolder(l Launch) (string, error) {
	root := filepath.Join(os.TempDir(), fmt.Sprintf("antiphase-%d", os.Getuid()))
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("dist: %w", err)
	}
	info, err := os.Lstat(root)
	if err != nil {
		return "", fmt.Errorf("dist: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("dist: %s is not a folder of this user alone: remove it, or give --rendezvous", root)
	}
	key := sha256.Sum256([]byte(l.Source + "\x00" + l.Job))
	return filepath.Join(root, hex.EncodeToString(key[:jobKey])), nil
}

// through lets an engine that connects by itself carry the address and the secret.
type through struct {
	comm Comm
	at   string
	once sync.Once
	card card
	err  error
}

func (t *through) bind() (string, []byte, error) { return t.at, freshSecret(), nil }

func (t *through) publish(addr string, secret []byte) error {
	t.card = card{addr, secret}
	return t.share()
}

func (t *through) find() (string, []byte, bool, error) {
	err := t.share()
	return t.card.Addr, t.card.Secret, false, err
}

// share broadcasts rank 0's card, once.
func (t *through) share() error {
	t.once.Do(func() {
		const room = 512
		b := make([]byte, room)
		if t.comm.Rank() == 0 {
			text, err := json.Marshal(t.card)
			if t.err = err; err != nil {
				return
			}
			copy(b, text)
		}
		x := tensor.Tensor{Buf: &tensor.Buffer{Host: b, Size: room}, Type: tensor.I16, Rows: 1, Cols: room / 2,
			Ld: room / 2}
		if t.err = t.comm.Broadcast(x, 0); t.err == nil {
			t.err = json.Unmarshal([]byte(strings.TrimRight(string(b), "\x00")), &t.card)
		}
	})
	return t.err
}

func (t *through) close()         {}
func (t *through) String() string { return "mpi" }

// Place returns where the ranks of l would meet, without connecting.
func Place(l Launch, o Options) (string, error) {
	m, err := meetingOf(l, o)
	if err != nil {
		return "", err
	}
	return m.String(), nil
}
