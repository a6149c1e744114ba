package web

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
)

// The modules use only two forms of import and export, one per line, so that they can be joined without parsing
// JavaScript; a test enforces this.
var (
	importLine = regexp.MustCompile(`(?m)^import \{ ([^}]+) \} from '\./([a-z]+\.js)';$`)
	exportLine = regexp.MustCompile(`(?m)^export ((?:async )?(?:function|const|let|class)) ([A-Za-z$]+)`)
	sheetLine  = regexp.MustCompile(`(?m)^<link rel="stylesheet" href="/ui/([a-z]+\.css)">\n`)
	scriptLine = regexp.MustCompile(`(?m)^<script type="module" src="/ui/([a-z]+\.js)"></script>\n`)
)

// bundle joins a module and its imports into one script: each becomes a function that returns its exports.
func bundle(name string, done map[string]bool, out *strings.Builder) {
	if done[name] {
		return
	}
	done[name] = true
	src := string(read(name))
	for _, m := range importLine.FindAllStringSubmatch(src, -1) {
		bundle(m[2], done, out)
	}
	var exports []string
	for _, m := range exportLine.FindAllStringSubmatch(src, -1) {
		exports = append(exports, m[2])
	}
	src = importLine.ReplaceAllString(src, "const { $1 } = modules['$2'];")
	src = exportLine.ReplaceAllString(src, "$1 $2")
	fmt.Fprintf(out, "modules['%s'] = (() => {\n%s\nreturn { %s };\n})();\n", name, src, strings.Join(exports, ", "))
}

// page is the document with styles and scripts inlined, under a policy that names their hashes, so that nothing else in
// it can run.
func page() []byte {
	html := string(read("index.html"))
	var css, js strings.Builder
	for _, m := range sheetLine.FindAllStringSubmatch(html, -1) {
		css.Write(read(m[1]))
	}
	js.WriteString("'use strict';\nconst modules = {};\n")
	for _, m := range scriptLine.FindAllStringSubmatch(html, -1) {
		bundle(m[1], map[string]bool{}, &js)
	}
	style, script := "\n"+css.String(), "\n"+js.String()
	meta := fmt.Sprintf(
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; base-uri 'none'; `+
			`form-action 'none'; style-src %s; script-src %s">`,
		hash(style),
		hash(script),
	)
	html = sheetLine.ReplaceAllLiteralString(html, "")
	html = scriptLine.ReplaceAllLiteralString(
		html,
		"<style>"+style+"</style>\n<script type=\"module\">"+script+"</script>\n",
	)
	return []byte(strings.Replace(html, "<head>\n", "<head>\n"+meta+"\n", 1))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
