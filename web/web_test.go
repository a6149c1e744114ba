package web

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func fetch(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	q := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, q)
	return w.Result()
}

// TestFilesAndPolicy: every file comes with its type and the policy, twice the same costs nothing, and there is
// nothing else.
func TestFilesAndPolicy(t *testing.T) {
	list, err := files.ReadDir("page")
	if err != nil || len(list) < 15 {
		t.Fatal(len(list), err)
	}
	paths := []string{"/", "/ui/file.html"}
	for _, e := range list {
		paths = append(paths, "/ui/"+e.Name())
	}
	kinds := map[string]string{
		".js":   "text/javascript; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".html": "text/html; charset=utf-8",
		"":      "text/html; charset=utf-8",
	}
	for _, p := range paths {
		r := fetch(t, p)
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != kinds[path.Ext(p)] ||
			r.Header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s: %d %v", p, r.StatusCode, r.Header)
		}
		if again := fetch(t, p, "If-None-Match", r.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %d", p, again.StatusCode)
		}
	}
	for _, p := range []string{"/ui/", "/ui/../web.go", "/ui/page/app.js", "/ui/nothing.js", "/ui/%2e%2e/web.go"} {
		if r := fetch(t, p); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", p, r.StatusCode)
		}
	}
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
		t.Error(policy)
	}
}

// TestModulesKeepToTheirForms: the bundle is made without parsing JavaScript, so modules import and export in one form
// each; and none makes HTML of text, runs text, or knows another address than its own server's.
func TestModulesKeepToTheirForms(t *testing.T) {
	list, err := files.ReadDir("page")
	if err != nil {
		t.Fatal(err)
	}
	never := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc|https?://|import\(|setAttribute\('(?:style|on)`,
	)
	for _, e := range list {
		src := string(read(e.Name()))
		for n, line := range strings.Split(src, "\n") {
			if len([]rune(line)) > 280 {
				t.Errorf("%s:%d: a line of %d characters", e.Name(), n+1, len(line))
			}
			if strings.HasSuffix(e.Name(), ".js") {
				if strings.HasPrefix(line, "import") && !importLine.MatchString(line) ||
					strings.HasPrefix(line, "export") && !exportLine.MatchString(line) {
					t.Errorf("%s:%d: %s", e.Name(), n+1, line)
				}
				if m := never.FindString(strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "")); m != "" {
					t.Errorf("%s:%d uses %s", e.Name(), n+1, m)
				}
			}
		}
		if strings.HasSuffix(e.Name(), ".js") &&
			(strings.Contains(src, "</script") || strings.Contains(src, "<script") || strings.Contains(src, "<!--")) {
			t.Errorf("%s cannot stand inside a page: it spells a tag", e.Name())
		}
		if strings.HasSuffix(e.Name(), ".html") &&
			regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|javascript:`).MatchString(src) {
			t.Errorf("%s has inline code or style", e.Name())
		}
	}
}

// TestFile: data cannot end its element, and nothing of the page refers to a server.
func TestFile(t *testing.T) {
	f := string(File([]byte(`{"text":"</script><script>alert(1)</script><!--"}`)))
	if strings.Count(f, "</script") != 2 || strings.Contains(f, "alert(1)</script") || strings.Contains(f, slot) ||
		strings.Contains(f, `src="/ui`) ||
		strings.Contains(f, `href="/ui`) {
		t.Error("the file's data is not closed in, or it needs a server")
	}
	for _, e := range []string{"app.js", "lab.js", "maps.js", "save.js"} {
		if !strings.Contains(f, "modules['"+e+"'] = ") {
			t.Errorf("%s is not in the file", e)
		}
	}
}

// The page as one file runs its own style and script and nothing else: the policy names the hashes of what stands in
// it. Files have tags of their own, and a stale one is sent again, whole, with the headers that keep other sites out.
func TestHashesAndHeaders(t *testing.T) {
	f := string(File([]byte(`{}`)))
	for element, directive := range map[string]string{"style": "style-src", "script type=\"module\"": "script-src"} {
		name, _, _ := strings.Cut(element, " ")
		_, rest, ok := strings.Cut(f, "<"+element+">")
		text, _, _ := strings.Cut(rest, "</"+name+">")
		sum := sha256.Sum256([]byte(text))
		if want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !ok || len(text) < 1000 ||
			!strings.Contains(f, want) {
			t.Errorf("the policy does not allow the %s of %d characters", name, len(text))
		}
	}
	if strings.Index(f, "Content-Security-Policy") > strings.Index(f, "<style>") ||
		strings.Count(f, "Content-Security-Policy") != 1 {
		t.Error("the policy comes after what it is for")
	}
	if data := string(File([]byte("{\"a\":\"\u2028\u2029<\"}"))); !strings.Contains(data,
		`id="data">{"a":"\u2028\u2029\u003c"}</script>`) {
		t.Error("the data is changed, or not escaped")
	}
	tags := map[string]string{}
	for _, p := range []string{"/", "/ui/app.js", "/ui/lab.js", "/ui/base.css", "/ui/file.html"} {
		r := fetch(t, p, "If-None-Match", `"old"`)
		if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "no-cache" ||
			r.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" ||
			r.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %d %v", p, r.StatusCode, r.Header)
		}
		body, err := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		if tag := r.Header.Get("ETag"); err != nil || len(body) == 0 ||
			tag != fmt.Sprintf("%q", hex.EncodeToString(sum[:8])) || tags[tag] != "" {
			t.Errorf("%s: %d bytes, tag %s (%v)", p, len(body), tag, err)
		} else {
			tags[tag] = p
		}
	}
	first, second := httptest.NewRecorder(), httptest.NewRecorder()
	Handler().ServeHTTP(first, httptest.NewRequest("GET", "/", nil))
	Handler().ServeHTTP(second, httptest.NewRequest("GET", "/ui/index.html", nil))
	if first.Body.String() != second.Body.String() {
		t.Error("/ is not the page")
	}
}

// A module comes once, after those it imports, and gives what it exports.
func TestBundleOrder(t *testing.T) {
	var out strings.Builder
	bundle("app.js", map[string]bool{}, &out)
	src := out.String()
	at := map[string]int{}
	for _, m := range regexp.MustCompile(`modules\['([a-z]+\.js)'\] = \(`).FindAllStringSubmatchIndex(src, -1) {
		name := src[m[2]:m[3]]
		if _, twice := at[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		at[name] = m[0]
	}
	if len(at) < 10 || strings.Contains(src, "\nimport ") || strings.Contains(src, "\nexport ") {
		t.Errorf("%d modules, or imports are left", len(at))
	}
	for name, place := range at {
		for _, m := range importLine.FindAllStringSubmatch(string(read(name)), -1) {
			if before, ok := at[m[2]]; !ok || before > place {
				t.Errorf("%s comes before %s, which it imports", name, m[2])
			}
			exported := string(read(m[2]))
			for _, word := range strings.Split(m[1], ", ") {
				if !slices.ContainsFunc(exportLine.FindAllStringSubmatch(exported, -1),
					func(m []string) bool { return m[2] == word }) {
					t.Errorf("%s does not export %s", m[2], word)
				}
			}
		}
	}
}
