// Package browser drives a real Chromium for tests, over its debugging pipe, so that it needs no port and no library.
//
// Open starts one headless browser for a test and skips the test if there is none. A Page is a tab with a width and a
// theme; it clicks, types and drags like a person, and records console messages.
package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"antiphase/internal/fault"
)

// Browser is a running Chromium.
type Browser struct {
	t     testing.TB
	dir   string
	write *os.File

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	pages   map[string]*Page // by session
	dead    error
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Session   string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Complaint *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

type reply struct {
	result json.RawMessage
	err    error
}

// Open starts a browser that ends with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	path := Path(t)
	if runtime.GOOS == "windows" {
		t.Skip("the debugging pipe needs inherited files")
	}
	b := &Browser{t: t, dir: t.TempDir(), waiting: map[int]chan reply{}, pages: map[string]*Page{}}
	hear, say, err := b.start(path)
	if err != nil {
		Lack(t, "%s does not start: %v", path, err)
	}
	b.write = say
	go func() {
		defer fault.Guard()()
		b.listen(hear)
	}()
	if err := b.call("", "Browser.getVersion", nil, nil); err != nil {
		Lack(t, "%s does not answer: %v\n%s", path, err, b.said())
	}
	return b
}

// start runs Chromium with its two pipes.
func (b *Browser) start(path string) (hear, say *os.File, err error) {
	theirs, say, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	hear, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	c := exec.Command(
		path,
		"--headless=new",
		"--no-sandbox",
		"--disable-gpu",
		"--disable-dev-shm-usage",
		"--remote-debugging-pipe",
		"--no-first-run",
		"--disable-extensions",
		"--disable-background-networking",
		"--mute-audio",
		"--hide-scrollbars",
		"--force-device-scale-factor=1",
		"--user-data-dir="+filepath.Join(b.dir, "profile"),
	)
	c.ExtraFiles = []*os.File{theirs, ours}
	log, err := os.Create(filepath.Join(b.dir, "stderr"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	c.Stderr = log
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	theirs.Close()
	ours.Close()
	b.t.Cleanup(func() {
		_ = b.call("", "Browser.close", nil, nil)
		say.Close()
		done := make(chan struct{})
		go func() {
			defer fault.Guard()()
			_ = c.Wait() // it was asked to end
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			_ = c.Process.Kill()
			<-done
		}
		hear.Close()
	})
	return hear, say, nil
}

// said is the end of what the browser has written to stderr.
func (b *Browser) said() []byte {
	text, err := os.ReadFile(filepath.Join(b.dir, "stderr"))
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-4000):]
}

// listen reads messages, which end with a zero byte.
func (b *Browser) listen(r io.Reader) {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		raw, err := in.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.dead = fmt.Errorf("the browser has ended: %w", err)
			for id, c := range b.waiting {
				delete(b.waiting, id)
				c <- reply{err: b.dead}
			}
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		c, page := b.waiting[m.ID], b.pages[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && c != nil:
			out := reply{result: m.Result}
			if m.Complaint != nil {
				out.err = errors.New(m.Complaint.Message)
			}
			c <- out
		case page != nil:
			page.event(m)
		}
	}
}

// call sends a command and waits for its result.
func (b *Browser) call(session, method string, params, into any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c := make(chan reply, 1)
	b.mu.Lock()
	if b.dead != nil {
		b.mu.Unlock()
		return b.dead
	}
	b.last++
	m := message{ID: b.last, Session: session, Method: method}
	if params != nil {
		m.Params = raw
	}
	b.waiting[m.ID] = c
	b.mu.Unlock()
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.write.Write(append(line, 0)); err != nil {
		return err
	}
	select {
	case r := <-c:
		if r.err != nil {
			return fmt.Errorf("%s: %w", method, r.err)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(r.result, into)
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s: no answer within 30 s", method)
	}
}
