package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// said1 runs a command line in this process and returns its code and what it printed to stderr.
func said1(args ...string) (int, string) {
	var out, errw bytes.Buffer
	code := run(args, strings.NewReader(""), &out, &errw)
	return code, errw.String()
}

// An empty value, as an unset shell variable gives, is refused wherever it would choose something else without a word.
func TestEmptyValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ line, about string }{
		{"train --size nano --from=", "--from"}, {"train --size nano --dir=", "--dir"},
		{"train --size nano --tokenizer=", "--tokenizer"},
		{"generate --model= -p x", "--model"}, {"chat --model=", "--model"}, {"serve --model=", "--model"},
		{"serve --model pair:diff --model=", "--model"}, {"eval --tasks lm --model=", "--model"},
		{"eval --tasks lm --model a=", "--model"},
		{"eval --tasks lm --model =pair:diff", "--model"}, {"speedrun --plan=", "--plan"},
		{"compare --name=", "--name"},
		{"attend -p x --out=", "--out"}, {"serve --api-key-file=", "--api-key-file"},
		{"eval --tasks lm -m pair:diff --output=", "--output"},
		{"show _", "MODEL"}, {"validate _", "MODEL"}, {"export _ out", "MODEL"}, {"export pair:diff _", "DIR"},
		{"import pair:diff _", "DIR"},
		{"convert _ out", "MODEL"}, {"pack _ -o f", "MODEL"}, {"report _", "FOLDER"}, {"scaling _ x", "RUN"},
		{"data show _ --step 1", "RUN"},
	} {
		args := strings.Fields(c.line)
		for i := range args {
			if args[i] == "_" {
				args[i] = ""
			}
		}
		if code, text := said1(args...); code != exitUsage || !strings.HasPrefix(text, "error: "+c.about+": ") {
			t.Errorf("%s: code %d, %q", c.line, code, text)
		}
	}
	for _, line := range []string{"generate -n 1 --seed 1 -q --prompt=",
		"train --size nano --dry-run -q --sample-every 1 --sample-prompt="} {
		if code, text := said1(strings.Fields(line)...); code != 0 && !strings.Contains(text, "--dry-run") {
			t.Errorf("%s: code %d, %q", line, code, text)
		}
	}
}

// Text that comes from outside reaches the terminal without control characters and as UTF-8.
func TestMessagesArePrintable(t *testing.T) {
	t.Chdir(t.TempDir())
	const evil = "x\x1b[31m\xff\x7f\u009b"
	for _, args := range [][]string{
		{"generate", "--model", evil, "-p", "x"}, {"show", evil}, {"train", "--size", "nano", "--data", evil},
		{"train", "--size", "nano", "--set", evil + "=1"},
		{"train", evil}, {"eval", "--tasks", "lm", "--limit", "1", "--model", evil + "=pair:diff"},
		{"report", evil}, {evil},
		{"train", "--size", "nano", "--steps", "0", "--dir", evil}, {"generate", "--" + evil},
		{"train", "--steps", evil}, {"serve", "--listen", evil},
	} {
		_, text := said1(args...)
		if text == "" || text != strings.ToValidUTF8(text, "?") || strings.ContainsAny(text, "\x1b\x7f\u009b") {
			t.Errorf("%q: %q", args, text)
		}
	}
}

// A packed file is a model for every verb that reads one; training from it says what to do instead.
func TestPackedFileEverywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{"train --size nano --steps 1 --dir run -q", "pack run -o p.safetensors -q",
		"tokenize --model p.safetensors abc", "tokenize --model pair:diff abc", "validate p.safetensors",
		"show p.safetensors", "import p.safetensors imported -q",
		"train --size nano --steps 1 --from imported --dir on -q"} {
		if code, text := said1(strings.Fields(line)...); code != 0 {
			t.Errorf("%s: code %d, %s", line, code, text)
		}
	}
	for _, from := range []string{"p.safetensors", "pair:diff"} {
		code, text := said1("train", "--size", "nano", "--from", from, "--dir", "no")
		if code != exitUsage || !strings.Contains(text, "import "+from+" FOLDER") {
			t.Errorf("--from %s: code %d, %s", from, code, text)
		}
	}
}

// Values that no check saw before: each is named, with the reason.
func TestRefusedValues(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"train --size nano --dry-run --bandwidth NaN": "error: --bandwidth: is NaN GB/s, must be positive and finite\n",

		"train --size nano --dry-run --bandwidth +Inf": "error: --bandwidth: is +Inf GB/s, must be positive " +
			"and finite\n",
		"data show run --step 0": "error: --step: is 0, must be at least 1\n",
		"help train bogus":       "error: unknown command \"bogus\" for \"antiphase train\", which has none\n",

		"bench serve --url localhost:80": `error: --url: is "localhost:80", must be http://HOST:PORT or https://HOST` +
			"\n",
		"bench serve --url ftp://x": `error: --url: is "ftp://x", must be http://HOST:PORT or https://HOST` + "\n",
		"bench serve --url http://": `error: --url: is "http://", must be http://HOST:PORT or https://HOST` + "\n",
		"bench serve --url http://a:b": `error: --url: parse "http://a:b": invalid port ":b" after host; ` +
			"want http://HOST:PORT or https://HOST\n",
		"eval -m http:///v1#m --tasks lm": `error: http:///v1#m is not an endpoint: is "http:///v1", ` +
			"must be http://HOST:PORT or https://HOST\n",
		"serve --allow-origin app.example": `error: server: origin "app.example": must be a scheme, a name ` +
			"and a port if it is not the scheme's own, such as https://app.example\n",
		"bench serve --url http://127.0.0.1:1 --requests 2 --rate 0": "error: http://127.0.0.1:1 answered none of 2 " +
			`requests: Post "http://127.0.0.1:1/v1/completions": dial tcp 127.0.0.1:1: connect: ` +
			"connection refused\n",
	} {
		wantCode := exitUsage
		if strings.Contains(line, "--requests") {
			wantCode = exitFailed
		}
		if code, text := said1(strings.Fields(line)...); code != wantCode || text != want {
			t.Errorf("%s: code %d, %q", line, code, text)
		}
	}
	t.Setenv("ANTIPHASE_API_KEY", " , ")
	if code, text := said1("serve", "--listen", "127.0.0.1:0"); code != exitUsage ||
		!strings.Contains(text, "ANTIPHASE_API_KEY") {
		t.Errorf("keys of nothing: code %d, %q", code, text)
	}
}

// A wrong speedrun is refused before it measures or, with --fresh, deletes anything.
func TestSpeedrunChecksFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	spec := fmt.Sprintf(
		`{"format":1,"name":%q,"sizes":["nano"],"archs":["diff"],"seeds":[1],"tune_seeds":0,"tasks":["lm"],"eval_seed":0}`,
		planPrefix+"short")
	if err := errors.Join(put("old", "rows.jsonl"), os.WriteFile("old/experiment.json", []byte(spec), 0o644),
		put("mine", "thesis")); err != nil {
		t.Fatal(err)
	}
	for line, code := range map[string]int{
		"speedrun --dir old --fresh --plan shrot":    exitUsage,
		"speedrun --dir old --fresh --data nope.txt": exitBadInput,
		"speedrun --dir old --fresh --data x@2":      exitUsage,
		"speedrun --dir mine":                        exitUsage,
	} {
		got, text := said1(strings.Fields(line)...)
		if got != code || strings.Contains(text, "measuring") {
			t.Errorf("%s: code %d, %q", line, got, text)
		}
	}
	if left := filesIn(t, "."); !slices.Equal(left,
		[]string{"mine", "mine/thesis", "old", "old/experiment.json", "old/rows.jsonl"}) {
		t.Errorf("left %q", left)
	}
}
