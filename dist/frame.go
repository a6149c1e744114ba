package dist

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The store's protocol. Both sides prove that they know the secret, which is never sent, and every frame has a MAC with
// a key of this connection only, so that frames can be neither injected nor replayed. Frames are not encrypted: they
// hold hashes, host names and NCCL's id.
//
//	server  greeting, nonce S
//	client  nonce C, HMAC(secret, "client" S C)
//	server  verdict, HMAC(secret, "server" S C)
//	both    frames: length, JSON, HMAC(key, direction, number, JSON)
const (
	greeting   = "antiphase/1\n"
	nonceSize  = 32
	maxFrame   = 1 << 20
	handshake  = 5 * time.Second // for the whole of it
	verdictYes = 'y'
	verdictNo  = 'n'
)

var (
	errSecret   = errors.New("the secret is not the same")
	errNotStore = errors.New("something other than an antiphase job listens there")
	errTooLarge = errors.New("the message is too large")
)

// message is any message between ranks and the store.
type message struct {
	Kind   string   `json:"kind"`
	Rank   int      `json:"rank,omitempty"`
	World  int      `json:"world,omitempty"`
	Host   string   `json:"host,omitempty"`
	PID    int      `json:"pid,omitempty"`
	Tag    string   `json:"tag,omitempty"`
	Value  []byte   `json:"value,omitempty"`
	Values [][]byte `json:"values,omitempty"`
	Text   string   `json:"text,omitempty"`
	Code   int      `json:"code,omitempty"`  // exit code that a rank that gave up suggests
	Count  uint64   `json:"count,omitempty"` // collectives begun
	Busy   int64    `json:"busy,omitempty"`  // milliseconds in the current one
}

// The kinds of messages.
const (
	msgHello  = "hello"  // rank, world, host, pid
	msgJoined = "joined" // everyone is here
	msgPut    = "put"    // a value with a tag
	msgAll    = "all"    // all ranks' values with a tag
	msgBeat   = "beat"
	msgFail   = "fail" // the job is over, with the reason
	msgBye    = "bye"  // this rank leaves normally
	msgEnd    = "end"  // all ranks have left normally
)

// link is one authenticated connection.
type link struct {
	c      net.Conn
	key    []byte
	client bool
	mu     sync.Mutex // of sent
	sent   uint64
	got    uint64
}

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// accept is the server's side of the handshake.
func accept(c net.Conn, secret []byte) (*link, error) {
	_ = c.SetDeadline(time.Now().Add(handshake)) // fails only for a closed connection, and then so does the next call
	s := make([]byte, nonceSize)
	_, _ = rand.Read(s) // never fails
	if _, err := c.Write(append([]byte(greeting), s...)); err != nil {
		return nil, err
	}
	answer := make([]byte, nonceSize+sha256.Size)
	if _, err := io.ReadFull(c, answer); err != nil {
		return nil, err
	}
	n := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], mac(secret, []byte("client"), s, n)) {
		_, _ = c.Write([]byte{verdictNo}) // a courtesy
		return nil, errSecret
	}
	if _, err := c.Write(append([]byte{verdictYes}, mac(secret, []byte("server"), s, n)...)); err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return &link{c: c, key: mac(secret, []byte("key"), s, n)}, nil
}

// connect is the client's side.
func connect(c net.Conn, secret []byte) (*link, error) {
	_ = c.SetDeadline(time.Now().Add(handshake))
	hello := make([]byte, len(greeting)+nonceSize)
	if n, err := io.ReadFull(c, hello); err != nil &&
		!bytes.HasPrefix([]byte(greeting), hello[:min(n, len(greeting))]) {
		return nil, fmt.Errorf("%w (%w)", errNotStore, err)
	} else if err != nil {
		return nil, fmt.Errorf("no greeting: %w", err) // a store that is flooded, or ends
	}
	if !bytes.HasPrefix(hello, []byte(greeting)) {
		return nil, errNotStore
	}
	s, n := hello[len(greeting):], make([]byte, nonceSize)
	_, _ = rand.Read(n) // never fails
	if _, err := c.Write(append(bytes.Clone(n), mac(secret, []byte("client"), s, n)...)); err != nil {
		return nil, err
	}
	verdict := make([]byte, 1+sha256.Size)
	if _, err := io.ReadFull(c, verdict[:1]); err != nil {
		return nil, err
	}
	if verdict[0] != verdictYes {
		return nil, errSecret
	}
	if _, err := io.ReadFull(c, verdict[1:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(verdict[1:], mac(secret, []byte("server"), s, n)) {
		return nil, fmt.Errorf("%w: the listener does not know it", errSecret)
	}
	_ = c.SetDeadline(time.Time{})
	return &link{c: c, key: mac(secret, []byte("key"), s, n), client: true}, nil
}

// code authenticates frame number n of a direction.
func (l *link) code(fromClient bool, n uint64, payload []byte) []byte {
	var head [9]byte
	if fromClient {
		head[0] = 1
	}
	binary.BigEndian.PutUint64(head[1:], n)
	return mac(l.key, head[:], payload)
}

// send may be called by several goroutines. A peer that accepts nothing within the given time is lost.
func (l *link) send(m message, within time.Duration) error {
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("dist: %w", err)
	}
	if len(payload) > maxFrame {
		return fmt.Errorf("dist: %w: %d bytes, at most %d", errTooLarge, len(payload), maxFrame)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	frame = append(append(frame, payload...), l.code(l.client, l.sent, payload)...)
	l.sent++
	_ = l.c.SetWriteDeadline(time.Now().Add(within)) // fails only for a closed connection, and then so does Write
	_, err = l.c.Write(frame)
	return err
}

// receive waits for the next frame without a timeout. One goroutine reads.
func (l *link) receive() (message, error) {
	var m message
	var head [4]byte
	if _, err := io.ReadFull(l.c, head[:]); err != nil {
		return m, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return m, fmt.Errorf("dist: a frame of %d bytes, at most %d", n, maxFrame)
	}
	body := make([]byte, int(n)+sha256.Size)
	if _, err := io.ReadFull(l.c, body); err != nil {
		return m, err
	}
	if !hmac.Equal(body[n:], l.code(!l.client, l.got, body[:n])) {
		return m, errors.New("dist: a frame with a wrong code")
	}
	l.got++
	if err := json.Unmarshal(body[:n], &m); err != nil {
		return m, fmt.Errorf("dist: %w", err)
	}
	return m, nil
}
