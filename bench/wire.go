package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// wire is one open HTTP connection, used by one goroutine. A request is one write and the response is read by the same
// goroutine: http.Client passes both through goroutines of its own, and waking those would be counted as the server's
// time.
type wire struct {
	base *url.URL
	conn net.Conn
	in   *bufio.Reader
	stop func() bool // of the context's hook
}

// openWires opens n connections and sends one small request on each, so that the first that is timed finds them warm.
// Closing is closeWires; they also close when ctx ends.
func openWires(ctx context.Context, base string, n int) ([]*wire, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	list := make([]*wire, 0, n)
	for range n {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", u.Host)
		if err != nil {
			return nil, errors.Join(err, closeWires(list))
		}
		w := &wire{base: u, conn: c, in: bufio.NewReader(c), stop: context.AfterFunc(ctx, func() { c.Close() })}
		list = append(list, w)
		if err := w.warm(); err != nil {
			return nil, errors.Join(err, closeWires(list))
		}
	}
	return list, nil
}

func closeWires(list []*wire) error {
	var errs []error
	for _, w := range list {
		if w.stop() {
			errs = append(errs, w.conn.Close())
		}
	}
	return errors.Join(errs...)
}

func (w *wire) warm() error {
	res, err := w.send(http.MethodGet, "/livez", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /livez: %s", res.Status)
	}
	return nil
}

// send sends a request and reads the header of its response. The body must be read to its end before the next one.
func (w *wire) send(method, path string, body []byte) (*http.Response, error) {
	q, err := http.NewRequest(method, w.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", "application/json")
	var out bytes.Buffer
	if err := q.Write(&out); err != nil {
		return nil, err
	}
	if _, err := w.conn.Write(out.Bytes()); err != nil {
		return nil, err
	}
	return http.ReadResponse(w.in, q)
}
