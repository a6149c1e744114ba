package server

import (
	"net/http"
	"runtime"
)

// statusRoutes tell how the server is.
type statusRoutes struct{ *core }

// health reports whether requests should be sent here.
func (t *statusRoutes) health(w http.ResponseWriter, r *http.Request) {
	if err := t.calls.unavailable(); err != nil {
		t.fail(w, r, err)
		return
	}
	t.json(w, http.StatusOK, map[string]string{"status": "ok"})
}

// live reports that the process responds, whatever it is doing.
func (t *statusRoutes) live(w http.ResponseWriter, _ *http.Request) {
	t.json(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (t *statusRoutes) version(w http.ResponseWriter, _ *http.Request) {
	t.json(w, http.StatusOK, map[string]string{"version": t.cfg.Version, "commit": t.cfg.Commit,
		"go": runtime.Version()})
}
