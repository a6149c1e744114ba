package server

import (
	"net/http"
	"runtime"
)

// health reports whether requests should be sent here.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if err := s.unavailable(); err != nil {
		s.fail(w, r, err)
		return
	}
	s.json(w, http.StatusOK, map[string]string{"status": "ok"})
}

// live reports that the process responds, whatever it is doing.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	s.json(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	s.json(w, http.StatusOK, map[string]string{"version": s.cfg.Version, "commit": s.cfg.Commit, "go": runtime.Version()})
}
