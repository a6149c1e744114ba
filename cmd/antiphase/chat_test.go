package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"antiphase/infer"
	"antiphase/model"
)

// chatted says lines to a model of nanoRun and gives the printed lines and what was noted. From a pipe, a line that
// fails fails the call.
func chatted(t *testing.T, lines string, args ...string) (out []string, notes string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"chat", "-m", "run", "--device", "cpu", "--temperature", "0", "--ignore-eos"}, args...)
	code, want := run(args, strings.NewReader(lines), &stdout, &stderr), 0
	if strings.Contains(stderr.String(), "error: ") {
		want = 1
	}
	if code != want {
		t.Fatalf("%q: exit %d, want %d: %s", args, code, want, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n"), stderr.String()
}

// A full context forgets the oldest messages and keeps the system's, which says how to answer.
func TestChatKeepsTheSystemMessage(t *testing.T) {
	nanoRun(t) // a context of 64 bytes
	if err := os.WriteFile("t.jinja", []byte("{% for m in messages %}<{{ m.role[0] }}:{{ m.content }}>{% endfor %}"),
		0o644); err != nil {
		t.Fatal(err)
	}
	var lines string
	for _, word := range []string{"one", "two", "three", "four", "five", "six"} {
		lines += word + "\n/show\n"
	}
	out, notes := chatted(t, lines, "--chat-template", "t.jinja", "--system", "be brief", "-n", "2")
	if !strings.Contains(notes, "the context of 64 tokens is full: the oldest message is forgotten") {
		t.Fatalf("nothing was forgotten: %s", notes)
	}
	shown := 0
	for _, line := range out {
		if !strings.Contains(line, "<u:") {
			continue
		}
		shown++
		if !strings.HasPrefix(line, "<s:be brief>") || strings.Count(line, "<s:") != 1 {
			t.Errorf("context %d is %q", shown, line)
		}
	}
	if last := out[len(out)-1]; shown != 6 || !strings.Contains(last, "<u:six>") || strings.Contains(last, "<u:one>") {
		t.Errorf("%d contexts, the last %q", shown, last)
	}
}

// Text that is continued forgets its beginning when the context is full; commands do what they say.
func TestChatCommands(t *testing.T) {
	nanoRun(t)
	out, notes := chatted(t, "abc\n/show\n/clear\nx\n/show\n/set temperature 9\n/set top-k\n/set heat 1\n"+
		"/set seed x\n/set seed 5x\n/set temperature -1\n/nothing\n/help\n", "-n", "2", "-q")
	if len(out) != 4 || !strings.Contains(out[1], "abc"+out[0]) || !strings.Contains(out[3], "x"+out[2]) ||
		strings.Contains(out[3], "abc") {
		t.Errorf("%q", out)
	}
	for _, want := range []string{"/set: want a name and a value", `"heat" is not one of temperature, top-k`,
		`/set seed: "x" is not a number`, `/set seed: "5x" is not a number`, "temperature",
		"/nothing: unknown command"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in %s", want, notes)
		}
	}
	if strings.Contains(notes, "> ") || strings.Contains(notes, "/clear  start over") {
		t.Errorf("with --quiet: %s", notes)
	}
	long := strings.Repeat("a", 40)
	out, notes = chatted(t, long+"\n"+long+"\n/show\n", "-n", "8")
	if !strings.Contains(notes, "the context of 64 tokens is full: the oldest ") || len(out) != 3 ||
		!strings.Contains(out[2], long) {
		t.Errorf("%q: %s", out, notes)
	}
	if _, notes = chatted(t, strings.Repeat("a", 60)+"\n", "-n", "8"); !strings.Contains(notes,
		"the text has 61 tokens, the context has room for 55") {
		t.Errorf("a line longer than the context: %s", notes)
	}
	if _, notes = chatted(t, "a\n", "-n", "3", "--verbose"); !strings.Contains(notes, "3 tokens, ") {
		t.Errorf("--verbose: %s", notes)
	}
	if _, notes = chatted(t, "/help\n"); !strings.Contains(notes, "/clear  start over") ||
		!strings.Contains(notes, "context of 64 tokens; /help lists commands") {
		t.Errorf("%s", notes)
	}
}

// The room kept for an answer is what may be written, at most half of the context.
func TestReserve(t *testing.T) {
	for most, want := range map[int]int{0: 50, 1: 1, 50: 50, 51: 50, 1000: 50} {
		r := &repl{f: &chatFlags{}, l: &loaded{Model: &model.Model{}}}
		r.l.Model.Config.Context = 101
		r.f.Sampling = infer.Sampling{MaxTokens: most}
		if got := r.reserve(); got != want {
			t.Errorf("%d tokens: %d kept, want %d", most, got, want)
		}
	}
}
