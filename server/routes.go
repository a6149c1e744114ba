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

// router is the table of routes, and answers for what is not in it.
type router struct {
	*core
	routes []route
}

func newRouter(c *core) *router {
	t := &router{core: c}
	t.routes = t.table()
	return t
}

// table lists all routes. A route is protected unless it says otherwise.
func (t *router) table() []route {
	text, token, look, embedding := &textRoutes{t.core}, &tokenRoutes{t.core}, &labRoutes{t.core},
		&embeddingRoutes{t.core}
	models, status, runs := &modelRoutes{t.core}, &statusRoutes{t.core}, &runRoutes{t.core}
	list := []route{
		{method: "GET", path: "/v1/models", about: "list the models", handle: models.listModels},
		{method: "GET", path: "/v1/models/{id...}", about: "describe one model", handle: models.getModel},
		{method: "POST", path: "/v1/chat/completions", about: "answer a conversation", handle: text.chat},
		{method: "POST", path: "/v1/completions", about: "continue prompts, or score them with echo and logprobs",
			handle: text.completions},
		{method: "POST", path: "/v1/embeddings", about: "mean-pooled last hidden states", handle: embedding.embeddings},
		{method: "POST", path: "/v1/attention", about: "attention maps, λ, losses and next tokens of a prompt",
			handle: look.attention, fields: attentionFields},
		{method: "POST", path: "/tokenize", about: "text or messages to token ids", handle: token.tokenize},
		{method: "POST", path: "/detokenize", about: "token ids to text", handle: token.detokenize},
		{method: "GET", path: "/tokenizer_info", about: "special tokens and chat template", handle: token.info},
		{method: "GET", path: "/health", public: true, about: "200 when serving, 503 while loading or draining",
			handle: status.health},
		{method: "GET", path: "/v1/health", public: true, about: "the same", handle: status.health},
		{method: "GET", path: "/livez", public: true, about: "200 while the process lives", handle: status.live},
		{method: "GET", path: "/readyz", public: true, about: "200 when requests should be sent here",
			handle: status.health},
		{method: "GET", path: "/metrics", about: "Prometheus metrics", handle: t.metrics.serve},
		{method: "GET", path: "/version", about: "version and commit", handle: status.version},
		{method: "GET", path: "/openapi.json", about: "this API, for programs", handle: t.openapi},
		{method: "GET", path: "/{$}", public: true, about: "the page", handle: t.index},
	}
	if t.cfg.Runs != nil {
		list = append(list, route{method: "GET", path: "/v1/runs", about: "list the runs of the folder",
			handle: runs.listRuns}, route{method: "GET", path: "/v1/runs/{id...}",
			about: "rows that a run has written beyond a cursor", handle: runs.getRun})
	}
	if t.cfg.Page != nil {
		list = append(list, route{method: "GET", path: "/ui/", public: true, about: "the page's files",
			handle: t.cfg.Page.ServeHTTP})
	}
	return list
}

// mux is the handler of the table. There is no default mux: what others register there, such as profiles, must not be
// exposed.
func (t *router) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range t.routes {
		mux.HandleFunc(r.pattern(), r.handle)
	}
	mux.HandleFunc("/", t.unknown)
	return mux
}

// public reports whether a pattern needs no key. Patterns outside the table need one.
func (t *router) public(pattern string) bool {
	i := slices.IndexFunc(t.routes, func(r route) bool { return r.pattern() == pattern })
	return i >= 0 && t.routes[i].public
}

// unknown responds for paths that are not in the table, and for methods that a path does not have.
func (t *router) unknown(w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, known := range t.routes {
		if matches(known.path, r.URL.Path) && known.method != r.Method {
			allow = append(allow, known.method)
		}
	}
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		t.fail(w, r, &apiError{Status: http.StatusMethodNotAllowed, Type: typeInvalid,
			Message: fmt.Sprintf("the method is not allowed here; use %s", strings.Join(allow, " or "))})
		return
	}
	t.fail(w, r, &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "unknown_url",
		Message: "there is no such route; GET /openapi.json lists them"})
}

// matches reports whether a pattern of the table matches a path.
func matches(pattern, path string) bool {
	if stem, ok := strings.CutSuffix(pattern, "{id...}"); ok {
		return strings.HasPrefix(path, stem)
	}
	return strings.TrimSuffix(pattern, "{$}") == path
}

// index is the page, or a list of routes if there is none.
func (t *router) index(w http.ResponseWriter, r *http.Request) {
	if t.cfg.Page != nil {
		t.cfg.Page.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "antiphase %s\n\n", t.cfg.Version)
	for _, known := range t.routes {
		fmt.Fprintf(w, "%-4s %-24s %s\n", known.method, known.path, known.about)
	}
}
