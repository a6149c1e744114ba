package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// route is one entry of the API.
type route struct {
	method, path string
	public       bool // needs no key
	about        string
	fields       map[string]any // of the body, if openapi.json lists them
	handle       http.HandlerFunc
}

func (r route) pattern() string { return r.method + " " + r.path }

// table lists all routes. A route is protected unless it says otherwise.
func (s *Server) table() []route {
	list := []route{
		{method: "GET", path: "/v1/models", about: "list the models", handle: s.listModels},
		{method: "GET", path: "/v1/models/{id...}", about: "describe one model", handle: s.getModel},
		{method: "POST", path: "/v1/chat/completions", about: "answer a conversation", handle: s.chat},
		{method: "POST", path: "/v1/completions", about: "continue prompts, or score them with echo and logprobs", handle: s.completions},
		{method: "POST", path: "/v1/embeddings", about: "mean-pooled last hidden states", handle: s.embeddings},
		{method: "POST", path: "/v1/attention", about: "attention maps, λ, losses and next tokens of a prompt", handle: s.attention, fields: attentionFields},
		{method: "POST", path: "/tokenize", about: "text or messages to token ids", handle: s.tokenize},
		{method: "POST", path: "/detokenize", about: "token ids to text", handle: s.detokenize},
		{method: "GET", path: "/tokenizer_info", about: "special tokens and chat template", handle: s.tokenizerInfo},
		{method: "GET", path: "/health", public: true, about: "200 when serving, 503 while loading or draining", handle: s.health},
		{method: "GET", path: "/v1/health", public: true, about: "the same", handle: s.health},
		{method: "GET", path: "/livez", public: true, about: "200 while the process lives", handle: s.live},
		{method: "GET", path: "/readyz", public: true, about: "200 when requests should be sent here", handle: s.health},
		{method: "GET", path: "/metrics", about: "Prometheus metrics", handle: s.metrics.serve},
		{method: "GET", path: "/version", about: "version and commit", handle: s.version},
		{method: "GET", path: "/openapi.json", about: "this API, for programs", handle: s.openapi},
		{method: "GET", path: "/{$}", public: true, about: "the page", handle: s.index},
	}
	if s.cfg.Runs != nil {
		list = append(list, route{method: "GET", path: "/v1/runs", about: "list the runs of the folder", handle: s.listRuns},
			route{method: "GET", path: "/v1/runs/{id...}", about: "rows that a run has written beyond a cursor", handle: s.getRun})
	}
	if s.cfg.Page != nil {
		list = append(list, route{method: "GET", path: "/ui/", public: true, about: "the page's files", handle: s.cfg.Page.ServeHTTP})
	}
	return list
}

// build makes the handler of the table. There is no default mux: what others register there, such as profiles, must not
// be exposed.
func (s *Server) build() http.Handler {
	mux := http.NewServeMux()
	s.routes = s.table()
	for _, r := range s.routes {
		mux.HandleFunc(r.pattern(), r.handle)
	}
	mux.HandleFunc("/", s.unknown)
	return s.guard(mux)
}

// public reports whether a pattern needs no key. Patterns outside the table need one.
func (s *Server) public(pattern string) bool {
	i := slices.IndexFunc(s.routes, func(r route) bool { return r.pattern() == pattern })
	return i >= 0 && s.routes[i].public
}

// unknown responds for paths that are not in the table, and for methods that a path does not have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, t := range s.routes {
		if matches(t.path, r.URL.Path) && t.method != r.Method {
			allow = append(allow, t.method)
		}
	}
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		s.fail(w, r, &apiError{Status: http.StatusMethodNotAllowed, Type: typeInvalid,
			Message: fmt.Sprintf("the method is not allowed here; use %s", strings.Join(allow, " or "))})
		return
	}
	s.fail(w, r, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "unknown_url", Message: "there is no such route; GET /openapi.json lists them"})
}

// matches reports whether a pattern of the table matches a path.
func matches(pattern, path string) bool {
	if stem, ok := strings.CutSuffix(pattern, "{id...}"); ok {
		return strings.HasPrefix(path, stem)
	}
	return strings.TrimSuffix(pattern, "{$}") == path
}

// index is the page, or a list of routes if there is none.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Page != nil {
		s.cfg.Page.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "antiphase %s\n\n", s.cfg.Version)
	for _, t := range s.routes {
		fmt.Fprintf(w, "%-4s %-24s %s\n", t.method, t.path, t.about)
	}
}
