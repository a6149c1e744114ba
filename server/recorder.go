package server

import (
	"net/http"
	"time"
)

// recorder knows what was answered, and gives the connection its deadlines, so that no route waits for ever for a client that does not send or
// does not read.
type recorder struct {
	http.ResponseWriter
	rc     *http.ResponseController
	limits *Limits
	conn   *boundedConn // nil where another listener is in use
	status int
	held   int64 // bytes reserved for the body
	unread bool  // the request has a body that has not arrived
}

// refusalGrace is how long an answer waits for a body that it does not need. net/http reads what is left of a small one before it answers, so
// that the connection can be used again: of a refusal under overload the body is nearly always there.
const refusalGrace = 20 * time.Millisecond

// newRecorder begins the time that the request's body may take.
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

// arrived says that the whole request has been read. What is read after it tells whether the client is still there, and has no deadline.
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

// writeSoon gives the next writes their time.
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

// Unwrap lets http.ResponseController through.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
