package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// request is one call of a server: with a body a POST.
type request struct {
	path, body string
	header     http.Header
	host       string
}

// ask gives the status and text of an answer.
func (f *flagRig) ask(url string, r request) (int, string) {
	f.Helper()
	method := "GET"
	if r.body != "" {
		method = "POST"
	}
	q, err := http.NewRequest(method, url+r.path, strings.NewReader(r.body))
	if err != nil {
		f.Fatal(err)
	}
	if r.header != nil {
		q.Header = r.header
	}
	if r.body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	q.Host, q.Close = r.host, true
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

// limit: the call is answered as usual by a server without the flag, and with another status by one with it.
func limit(value string, status int, says string, r request) assertion {
	return func(f *flagRig) {
		url, _ := f.serve()
		if got, text := f.ask(url, r); got != http.StatusOK {
			f.Fatalf("without the flag: %d %s", got, text)
		}
		url, _ = f.serve("--" + f.flag.Name + "=" + value)
		if got, text := f.ask(url, r); got != status || !strings.Contains(text, says) {
			f.Errorf("with %s: %d %s; want %d and %q", value, got, text, status, says)
		}
	}
}

// completion is a completion with these fields, talk a chat, look a question about attention.
func completion(fields string) request {
	return request{path: "/v1/completions", body: `{"model":"run","prompt":"abc","max_tokens":2,` + fields + `}`}
}

func talk(messages string) request {
	return request{path: "/v1/chat/completions", body: `{"model":"run","max_tokens":2,"messages":[` + messages + `]}`}
}

func look(fields string) request {
	return request{path: "/v1/attention", body: `{"model":"run","prompt":"abcdefgh"` + fields + `}`}
}

const (
	oneMessage = `{"role":"user","content":"a"}`
	deepSchema = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"c":{"type":"boolean"}}}}}}}}}`
)

var ofServe = map[string]assertion{
	"serve --max-n":              limit("1", 400, `"param":"n"`, completion(`"n":2`)),
	"serve --max-request-tokens": limit("3", 400, `"param":"max_tokens"`, completion(`"n":2`)),
	"serve --max-prompts": limit("1", 400, `"param":"prompt"`,
		request{path: "/v1/completions", body: `{"model":"run","prompt":["a","b"],"max_tokens":1}`}),
	"serve --max-messages":          limit("1", 400, `"param":"messages"`, talk(oneMessage+","+oneMessage)),
	"serve --max-stops":             limit("1", 400, `"param":"stop"`, completion(`"stop":["x","y"]`)),
	"serve --max-stop-bytes":        limit("2", 400, `"param":"stop`, completion(`"stop":["abc"]`)),
	"serve --max-logprobs":          limit("1", 400, `"param":"logprobs"`, completion(`"logprobs":2`)),
	"serve --max-logit-bias":        limit("1", 400, `"param":"logit_bias"`, completion(`"logit_bias":{"1":1,"2":1}`)),
	"serve --max-attention-cells":   limit("20", 400, "too many numbers to send", look("")),
	"serve --max-attention-entries": limit("20", 400, "too many entries of maps", look("")),
	"serve --max-attention-topk":    limit("1", 400, `"param":"topk"`, look(`,"topk":2`)),
	"serve --max-body":              limit("100", 413, "", completion(`"user":"`+strings.Repeat("u", 100)+`"`)),
	"serve --max-schema-depth":      limit("2", 400, "nest", completion(deepSchema)),
	"serve --schema-timeout":        limit("1ns", 400, "", completion(deepSchema)),
	"serve --request-timeout":       limit("1ns", 504, "deadline_exceeded", completion(`"seed":1`)),
	"serve --cache-tokens": limit("16", 400, "",
		request{path: "/v1/completions", body: `{"model":"run","prompt":"` + strings.Repeat("a", 40) +
			`","max_tokens":1}`}),
	"serve --api-key-file": func(f *flagRig) {
		f.write("keys", "one-long-key\n")
		url, _ := f.serve("--api-key-file", "keys")
		none, _ := f.ask(url, request{path: "/v1/models"})
		key, _ := f.ask(url, request{path: "/v1/models", header: http.Header{"Authorization": {"Bearer one-long-key"}}})
		if none != 401 || key != 200 {
			f.Errorf("%d without a key, %d with one", none, key)
		}
	},
	"serve --allow-host": func(f *flagRig) {
		r := request{path: "/v1/models", host: "model.example"}
		url, _ := f.serve()
		if got, _ := f.ask(url, r); got == 200 {
			f.Error("a foreign host is answered")
		}
		url, _ = f.serve("--allow-host", "model.example")
		if got, text := f.ask(url, r); got != 200 {
			f.Errorf("%d %s", got, text)
		}
		url, _ = f.serve("--listen", "0.0.0.0:0", "--insecure", "--allow-host", "other.example")
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
		if got, _ := f.ask("http://127.0.0.1:"+port, r); got == 200 {
			f.Error("a host that was not allowed is answered on an address that others reach")
		}
	},
	"serve --allow-origin": func(f *flagRig) {
		r := completion(`"seed":1`)
		r.header = http.Header{"Origin": {"https://app.example"}}
		url, _ := f.serve()
		if got, _ := f.ask(url, r); got != 403 {
			f.Errorf("a foreign origin gets %d", got)
		}
		url, _ = f.serve("--allow-origin", "https://app.example")
		r.header = http.Header{"Origin": {"https://app.example"}}
		if got, text := f.ask(url, r); got != 200 {
			f.Errorf("%d %s", got, text)
		}
	},
	"serve --insecure": func(f *flagRig) {
		f.has(f.fails("serve", "--model", "run", "--listen", "0.0.0.0:0"), `--insecure`)
		url, _ := f.serve("--listen", "0.0.0.0:0", "--insecure")
		if _, port, _ := net.SplitHostPort(strings.TrimPrefix(url, "http://")); port == "" {
			f.Errorf("it serves on %s", url)
		}
	},
	"serve --listen": func(f *flagRig) {
		port := freePort(f.T)
		url, _ := f.serve("--listen", "127.0.0.1:"+port)
		if url != "http://127.0.0.1:"+port {
			f.Errorf("it serves on %s", url)
		}
	},
	"serve --model": func(f *flagRig) {
		url, _ := f.serve("--model", "second=run")
		_, text := f.ask(url, request{path: "/v1/models"})
		f.has(text, `"id":"run"`)
		f.has(text, `"id":"second"`)
	},
	"serve --runs": func(f *flagRig) {
		url, _ := f.serve("--runs", ".")
		_, text := f.ask(url, request{path: "/v1/runs"})
		f.has(text, `"run"`)
	},
	"serve --chat-template": func(f *flagRig) {
		url, _ := f.serve("--chat-template", "t.jinja")
		_, long := f.ask(url, talk(oneMessage))
		url, _ = f.serve()
		_, plain := f.ask(url, talk(oneMessage))
		if a, b := promptTokens(f, long), promptTokens(f, plain); a != b+2 {
			f.Errorf("prompts of %d and %d tokens; the template puts two characters around a message", a, b)
		}
	},
	"serve --log-json": func(f *flagRig) {
		url, said := f.serve("--log-json")
		f.ask(url, request{path: "/v1/models"})
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			for line := range strings.Lines(said()) {
				if strings.Contains(line, "/v1/models") && json.Valid([]byte(line)) {
					return
				}
			}
		}
		f.Errorf("no line of the log is JSON about the call:\n%s", said())
	},
	"serve --max-tokens": func(f *flagRig) {
		url, _ := f.serve("--max-tokens", "3")
		_, text := f.ask(url, request{path: "/v1/completions",
			body: `{"model":"run","prompt":"abc","ignore_eos":true,"seed":1}`})
		f.has(text, `"completion_tokens":3\b`)
	},
	"serve --slots": notShown(
		"how many sequences a step takes shows in latency alone: infer's and server's tests hold Options.Slots"),
	"serve --header-timeout": func(f *flagRig) { f.closesSoon("GET / HTTP/1.1\r\n", "--header-timeout", "50ms") },
	"serve --idle-timeout": func(f *flagRig) {
		f.closesSoon("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", "--idle-timeout", "50ms")
	},
	"serve --body-timeout": func(f *flagRig) {
		f.closesSoon("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"Content-Length: 100\r\n\r\n{", "--body-timeout", "50ms")
	},
	"serve --max-connections": func(f *flagRig) {
		url, _ := f.serve("--max-connections", "1")
		c := f.dial(url)
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		answers := bufio.NewReader(c)
		for n := 0; ; n++ { // once another would have to wait, answers announce that the connection ends
			fmt.Fprint(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				f.Fatalf("after %d answers: %v", n, err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Close {
				f.same(err, nil)
				return
			}
		}
	},
	"serve --prefill-chunk": func(f *flagRig) { // memory and latency alone: the text is the same
		r := completion(`"temperature":0`)
		url, _ := f.serve()
		_, whole := f.ask(url, r)
		url, _ = f.serve("--prefill-chunk", "1")
		_, parts := f.ask(url, r)
		if a, b := answerText(f, whole), answerText(f, parts); a != b {
			f.Errorf("%q and %q", a, b)
		}
	},
	"serve --max-header": func(f *flagRig) {
		r := request{path: "/livez", header: http.Header{"X-Long": {strings.Repeat("h", 8000)}}}
		url, _ := f.serve()
		long, _ := f.ask(url, r)
		url, _ = f.serve("--max-header", "1000")
		if cut, text := f.ask(url, r); long != 200 || cut == 200 { // 431, or the connection is reset before it is read
			f.Errorf("%d without the flag; %d %s with it", long, cut, text)
		}
	},
	"serve --max-queue-tokens": notShown("takes calls that wait: server's TestGateBounds holds Limits.QueueTokens"),
	"serve --max-queue": notShown(
		"takes more calls at once than slots and places: server's TestGateBounds and TestOverload hold Limits.Queue"),
	"serve --max-wait": notShown(
		"takes an engine slow enough to be waited for: server's TestGateBoundsTheWait holds Limits.Wait"),
	"serve --write-timeout": notShown(
		"takes a client that stops reading with full socket buffers: server's TestSlowReader holds " +
			"Limits.WriteTimeout"),
	"serve --ping": notShown("takes a stream that is silent for that long: server's TestPings holds Limits.Ping"),
	"serve --drain-timeout": notShown(
		"takes an answer longer than the time-out: server's TestDrainGivesUp holds Limits.Drain"),
}

func init() {
	served := []string{"bench", "serve", "--json", "-q", "--reps", "1", "--prompt", "4", "--output", "4",
		"--device", "cpu"}
	ofServe["bench serve --model"] = func(f *flagRig) {
		f.has(f.ok(append(served, "--model", "run", "--batch", "1")...), `"ratio":\s*\[`)
		f.has(f.fails(append(served, "--model", "run", "--url", "http://127.0.0.1:1")...),
			"--url: cannot be combined with --model")
	}
	ofServe["bench serve --batch"] = func(f *flagRig) {
		f.has(f.ok(append(served, "--model", "run", "--batch", "2,3")...), `(?s)"batch": 2,.*"batch": 3,`)
		f.has(f.fails("bench", "serve", "--batch", "2"), "needs --model")
	}
	ofServe["bench serve --concurrency"] = func(f *flagRig) {
		url, _ := f.serve()
		out := f.ok("bench", "serve", "--url", url, "--concurrency", "2", "--requests", "3", "--prompt", "4",
			"--output", "4", "--json", "-q")
		f.has(out, `"answered": 3`)
		f.has(f.fails("bench", "serve", "--url", url, "--concurrency", "2", "--rate", "3"),
			"--rate: cannot be combined with --concurrency")
	}
}

func (f *flagRig) dial(url string) net.Conn {
	f.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// closesSoon: after these bytes a server with the flag ends the connection; its own times are ten seconds and more.
func (f *flagRig) closesSoon(send string, args ...string) {
	f.Helper()
	url, _ := f.serve(args...)
	c := f.dial(url)
	defer c.Close()
	if _, err := io.WriteString(c, send); err != nil {
		f.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(9 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil {
		f.Errorf("the connection stays open: %v", err)
	}
}

func promptTokens(f *flagRig, text string) int {
	f.Helper()
	var r struct {
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Usage.Prompt == 0 {
		f.Fatalf("%v in %s", err, text)
	}
	return r.Usage.Prompt
}

func answerText(f *flagRig, text string) string {
	f.Helper()
	var r struct{ Choices []struct{ Text string } }
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&r); err != nil || len(r.Choices) == 0 {
		f.Fatalf("%v in %s", err, text)
	}
	return r.Choices[0].Text
}
