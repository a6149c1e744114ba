package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

// heard is a template that shows every part of a conversation.
const heard = "{% for m in messages %}<{{ m.role[0] }}:{{ m.content }}>{% endfor %}"

// conversation opens the model of nanoRun, with a context of 64 bytes of one token each, for a conversation by a
// template, or a continued text without one. Answers may have 10 tokens.
func conversation(t *testing.T, template string) (r *repl, notes *bytes.Buffer) {
	t.Helper()
	nanoRun(t)
	notes = &bytes.Buffer{}
	a := &app{err: notes, device: "cpu", precision: "fp32", kvCache: "auto", threads: 1}
	e, l, done, err := a.engine("run", 1)
	if err != nil {
		t.Fatal(err)
	}
	r = &repl{a: a, f: &chatFlags{}, e: e, l: l, s: e.NewSession()}
	r.f.MaxTokens = 10
	if template != "" {
		if r.template, err = chat.Parse(template, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { r.s.Close(); done() })
	return r, notes
}

// A conversation holds every message and answer in order; when it outgrows the context the oldest question goes, with
// its answer, and no more than must.
func TestConversationInOrder(t *testing.T) {
	r, notes := conversation(t, heard)
	for _, x := range []struct{ says, context, answer string }{
		{"first", "<u:first>", "one"},
		{"second", "<u:first><a:one><u:second>", "two"},
		{"the third", "<u:first><a:one><u:second><a:two><u:the third>", "3"}, // 46 tokens
		{"4", "<u:first><a:one><u:second><a:two><u:the third><a:3><u:4>"[len("<u:first><a:one>"):], ""},
		{"the fifth question of all", "<u:4><a:><u:the fifth question of all>", "5"},
		{strings.Repeat("x", 41), "<u:" + strings.Repeat("x", 41) + ">", "6"},
	} {
		notes.Reset()
		before := len(r.said)
		if err := r.ask(x.says); err != nil {
			t.Fatal(err)
		}
		if got := r.l.Tokenizer.Decode(r.s.Tokens(), false); got != x.context {
			t.Errorf("after %q: %q, want %q", x.says, got, x.context)
		}
		gone := before + 1 - len(r.said)
		if n := strings.Count(notes.String(),
			"the context of 64 tokens is full: the oldest message is forgotten"); n != gone/2 {
			t.Errorf("%d messages are gone: %s", gone, notes)
		}
		r.said = append(r.said, chat.Message{Role: "assistant", Content: x.answer})
	}
	r.f.system = "s"
	if err := r.ask("7"); err != nil || r.l.Tokenizer.Decode(r.s.Tokens(), false) != "<s:s><u:7>" {
		t.Errorf("%q, %v", r.l.Tokenizer.Decode(r.s.Tokens(), false), err)
	}
	r.f.system = ""
	// With <u:a><a:> and <u:…> 54 and 55 tokens; 10 are for the answer.
	for n, kept := range map[int]bool{41: true, 42: false} {
		r.said = []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant"}}
		if err := r.ask(strings.Repeat("x", n)); err != nil || (len(r.said) == 3) != kept {
			t.Errorf("%d bytes: %d messages, %v", n, len(r.said), err)
		}
	}
	r.said = nil
	for n, good := range map[int]bool{59: true, 60: false} { // <u:…> has 4 more, and one token must be free
		if err := r.ask(strings.Repeat("x", n)); (err == nil) != good || err != nil &&
			err.Error() != "the message has 64 tokens, the context only 64" {
			t.Errorf("%d bytes: %v", n, err)
		}
		r.said = nil
	}
}

// Text that is continued keeps its newest tokens, as many as leave room for an answer, after the token that begins
// every text.
func TestContinuedText(t *testing.T) {
	r, notes := conversation(t, "")
	first := r.l.Manners.First
	const letters = "abcdefghijklmnopqrstuvwxyz"
	whole := ""
	for turn, x := range []struct {
		text string
		gone int // tokens
	}{{letters, 0}, {letters, 0}, {"0", 0}, {"", 0}, {"!", 1}, {letters, 26}} { // 54 tokens are kept, one is the first
		notes.Reset()
		whole += x.text
		if err := r.ask(x.text); err != nil {
			t.Fatal(err)
		}
		want := r.l.Tokenizer.Append([]int32{first}, whole[max(0, len(whole)-53):])
		if !slices.Equal(r.s.Tokens(), want) {
			t.Errorf("turn %d: %d tokens, %q, want %q", turn, len(r.s.Tokens()),
				r.l.Tokenizer.Decode(r.s.Tokens(), false), r.l.Tokenizer.Decode(want, false))
		}
		says := fmt.Sprintf("the context of 64 tokens is full: the oldest %d are forgotten", x.gone)
		if strings.Contains(notes.String(), says) != (x.gone > 0) {
			t.Errorf("turn %d: %s", turn, notes)
		}
	}
	if err := r.ask(strings.Repeat("y", 53)); err != nil ||
		!slices.Equal(r.s.Tokens(), r.l.Tokenizer.Append([]int32{first}, strings.Repeat("y", 53))) {
		t.Errorf("%d tokens, %v", len(r.s.Tokens()), err)
	}
	if err := r.ask(strings.Repeat("x", 54)); err == nil ||
		err.Error() != "the text has 54 tokens, the context has room for 53" {
		t.Error(err)
	}
}

// The answer is part of the conversation; /clear begins a new one, a blank line says nothing, the last line needs no
// end.
func TestChatTurns(t *testing.T) {
	nanoRun(t)
	if err := os.WriteFile("t.jinja", []byte(heard), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-n", "2", "--stop", "\n", "--stop", "\r", "--chat-template", "t.jinja"}
	out, _ := chatted(t, "abc\nde\n/show\n/clear\nxyz\n/show\n", args...)
	if len(out) != 5 || !strings.HasPrefix(out[2], "<u:abc><a:"+out[0]+"><u:de>") ||
		!strings.HasPrefix(out[4], "<u:xyz>") {
		t.Errorf("%q", out)
	}
	if out, _ = chatted(t, "\n\r\nabc\r\n\n/clear\n\nxyz", args...); len(out) != 2 {
		t.Errorf("%q", out)
	}
}

// Every answer is drawn with another seed, the first with the one that was given or printed, and a template sees the
// tokenizer's own names of the special tokens.
func TestChatSeeds(t *testing.T) {
	nanoRun(t)
	say := func(in string, args ...string) (out []string, notes string) {
		var stdout, stderr bytes.Buffer
		if code := run(append([]string{"chat", "-m", "run", "--device", "cpu", "--temperature", "2", "--ignore-eos",
			"-n", "6"}, args...), strings.NewReader(in), &stdout, &stderr); code != 0 {
			t.Fatal(stderr.String())
		}
		return []string{stdout.String()}, stderr.String()
	}
	first, _ := say("abc\n", "--seed", "5")
	second, _ := say("abc\n", "--seed", "6")
	both, _ := say("abc\n/clear\nabc\n", "--seed", "5")
	if first[0] == second[0] || both[0] != first[0]+second[0] {
		t.Errorf("%q, want %q and %q", both, first, second)
	}
	drawn, notes := say("abc\n")
	_, seed, ok := strings.Cut(notes, "seed ")
	seed, _, _ = strings.Cut(seed, "\n")
	if again, _ := say("abc\n", "--seed", seed); !ok || again[0] != drawn[0] {
		t.Errorf("seed %q was printed, and gives %q instead of %q", seed, again, drawn)
	}
	if _, notes = say("abc\n", "--temperature", "0"); strings.Contains(notes, "seed ") {
		t.Errorf("a seed that does not matter: %s", notes)
	}
	if err := os.WriteFile("t.jinja",
		[]byte("{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ messages[0].content }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &loaded{Tokenizer: tokenizer.Bytes()}
	texts := l.specialTexts()
	eos, _ := l.Tokenizer.EOS()
	if texts["eos_token"] != l.Tokenizer.Token(eos) || texts["eos_token"] == "" {
		t.Errorf("%q", texts)
	}
	out, _ := chatted(t, "abc\n/show\n", "--chat-template", "t.jinja", "-n", "1")
	if want := texts["bos_token"] + "|" + texts["eos_token"] + "|" + texts["pad_token"] + "|abc" +
		out[0]; out[1] != want {
		t.Errorf("%q, want %q", out[1], want)
	}
}
