package server

import (
	"net/http"
	"time"
)

// recorder records the response, and sets the connection's deadlines, so that no route waits forever for a client that
// does not send or does not read.
type recorder struct {
	http.ResponseWriter
	rc     *http.ResponseController
	limits *Limits
	conn   *boundedConn // nil if another listener is in use
	status int
	held   int64 // bytes reserved for the body
	unread bool  // the request has a body that has not arrived
}

// refusalGrace is how long a response waits for a body that it does not need. net/http reads the rest of a small one
// before it responds, so that the connection can be reused: the body of a request rejected under overload has nearly
// always arrived.
const refusalGrace = 20 * time.Millisecond

// newRecorder starts the time limit of the request's body.
func newRecorder(w http.ResponseWriter, r *http.Request, l *Limits) *recorder {
	rec := &recorder{ResponseWriter: w, rc: http.NewResponseController(w), limits: l, unread: r.ContentLength != 0}
	rec.conn, _ = r.Context().Value(keyConn).(*boundedConn)
	if !rec.unread {
		rec.arrived()
		return rec
	}
	rec.readBy(l.BodyTimeout)
	return rec
}

// arrived records that the whole request has been read. Later reads only detect whether the client is still connected,
// and have no deadline.
func (w *recorder) arrived() {
	if w.unread {
		w.unread = false
		_ = w.rc.SetReadDeadline(time.Time{})
	}
	if w.conn != nil {
		w.conn.enter(serves)
	}
}

func (w *recorder) readBy(d time.Duration) {
	_ = w.rc.SetReadDeadline(time.Now().Add(d)) // not every writer has deadlines
}

// writeSoon sets the deadline of the next writes.
func (w *recorder) writeSoon() { _ = w.rc.SetWriteDeadline(time.Now().Add(w.limits.WriteTimeout)) }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		if w.unread {
			w.readBy(refusalGrace)
		}
	}
	w.writeSoon()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.writeSoon()
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
