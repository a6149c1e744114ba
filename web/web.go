// Package web is the server's web page: hand-written HTML, CSS and JavaScript modules, embedded unchanged.
//
// Handler serves it with a policy under which only these files can run. File makes one self-contained HTML document of
// the same modules (bundle.go), with data in place of the server.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed page
var files embed.FS

// policy restricts the page to running and reading its own files, and calling its own server. Inline scripts and styles
// are forbidden.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// asset is a file as it is sent.
type asset struct {
	body []byte
	kind string
	etag string
}

// Handler serves GET / and the files below /ui/.
func Handler() http.Handler {
	assets := map[string]asset{}
	list, err := files.ReadDir("page")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range list {
		body := read(e.Name())
		assets["/ui/"+e.Name()] = newAsset(e.Name(), body)
	}
	assets["/"] = assets["/ui/index.html"]
	assets["/ui/file.html"] = newAsset("file.html", page())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := assets[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", a.etag)
		if r.Header.Get("If-None-Match") == a.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(a.body) // the client may be gone
	})
}

func newAsset(name string, body []byte) asset {
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // the system's table may differ, and browsers reject modules of another type
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".html":
		kind = "text/html; charset=utf-8"
	}
	sum := sha256.Sum256(body)
	return asset{body: body, kind: kind, etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// read returns an embedded file.
func read(name string) []byte {
	b, err := files.ReadFile(path.Join("page", name))
	if err != nil {
		panic(fmt.Sprintf("web: %v", err)) // names come from the folder itself, or from imports that a test walks
	}
	return b
}

// slot is the place of the data in a file.
const slot = "<!--data-->"

// File is the lab as one document that needs no server: json is its data, which must be JSON. No text in it can end its
// element.
func File(json []byte) []byte {
	safe := strings.NewReplacer("<", `\u003c`, "\u2028", `\u2028`, "\u2029", `\u2029`).Replace(string(json))
	return []byte(
		strings.Replace(string(page()), slot, `<script type="application/json" id="data">`+safe+"</script>", 1),
	)
}
