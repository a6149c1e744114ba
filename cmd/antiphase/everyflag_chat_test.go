package main

import (
	"bytes"
	"strings"
)

// talk says lines to chat and gives what it printed.
func (f *flagRig) talk(lines string, args ...string) (stdout, stderr string) {
	f.Helper()
	var out, errw bytes.Buffer
	args = append([]string{"chat", "-m", "run"}, args...)
	if code := run(args, strings.NewReader(lines), &out, &errw); code != 0 {
		f.Fatalf("antiphase %q: exit code %d\n%s", args, code, errw.String())
	}
	return out.String(), errw.String()
}

// answers: the answer is another with the flag, and the same again.
func answers(base []string, args ...string) assertion {
	return func(f *flagRig) {
		with, _ := f.talk("hello\n", append(base, args...)...)
		again, _ := f.talk("hello\n", append(base, args...)...)
		without, _ := f.talk("hello\n", base...)
		if with != again || with == without {
			f.Errorf("%q gives %q, then %q; without it %q", args, with, again, without)
		}
	}
}

// greedy: the flag leaves the most likely token unchanged.
func greedy(args ...string) assertion {
	return func(f *flagRig) {
		best, _ := f.talk("hello\n", "--temperature", "0", "-n", "8")
		with, _ := f.talk("hello\n", append([]string{"--temperature", "2", "--seed", "3", "-n", "8"}, args...)...)
		if hot, _ := f.talk("hello\n", "--temperature", "2", "--seed", "3", "-n", "8"); with != best || hot == best {
			f.Errorf("%q gives %q, greedy is %q, without it %q", args, with, best, hot)
		}
	}
}

var chatSeed = []string{"--seed", "5", "-n", "12"}

var ofChat = map[string]assertion{
	"chat --temperature":        answers(chatSeed, "--temperature", "3"),
	"chat --seed":               answers([]string{"--seed", "5", "-n", "12"}, "--seed", "6"),
	"chat --top-k":              greedy("--top-k", "1"),
	"chat --top-p":              greedy("--top-p", "0.00001"),
	"chat --min-p":              greedy("--min-p", "1"),
	"chat --repetition-penalty": answers([]string{"--temperature", "0", "-n", "12"}, "--repetition-penalty", "100"),
	"chat --max-tokens":         answers([]string{"--temperature", "0", "-n", "12"}, "--max-tokens", "3"),
	"chat --ignore-eos": func(f *flagRig) {
		f.talk("hello\n", "--ignore-eos", "--temperature", "0", "-n", "2")
		f.lacks(f.ok("help", "chat"), "no such flag")
	},
	"chat --stop": func(f *flagRig) {
		whole, _ := f.talk("hello\n", chatSeed...)
		text := strings.TrimRight(whole, "\n")
		if len(text) < 2 {
			f.Fatalf("the answer %q is too short to stop in", whole)
		}
		stop := text[len(text)/2 : len(text)/2+1]
		if cut, _ := f.talk("hello\n", append(chatSeed, "--stop", stop)...); strings.Contains(cut, stop) ||
			len(cut) >= len(whole) {
			f.Errorf("stopped at %q: %q of %q", stop, cut, whole)
		}
	},
	"chat --model": func(f *flagRig) {
		own, _ := f.talk("hello\n", "-n", "8", "--temperature", "0")
		other, _ := f.talk("hello\n", "-n", "8", "--temperature", "0", "--model", "pair:diff")
		if own == other {
			f.Error("two models write the same")
		}
	},
	"chat --verbose": func(f *flagRig) {
		_, said := f.talk("hello\n", "-n", "2", "--verbose")
		_, silent := f.talk("hello\n", "-n", "2")
		f.has(said, `tok/s`)
		f.lacks(silent, `tok/s`)
	},
	"chat --raw": func(f *flagRig) {
		f.chatty()
		raw, _ := f.talk("hello\n", "-m", "chatty", "--raw", "--seed", "5", "-n", "12")
		if said, _ := f.talk("hello\n", "-m", "chatty", "--seed", "5", "-n", "12"); raw == said {
			f.Errorf("the template changes nothing: %q", raw)
		}
		f.has(f.fails("chat", "-m", "chatty", "--raw", "--chat-template", "t.jinja"), `has no effect`)
	},
	"chat --chat-template": answers(chatSeed, "--chat-template", "t.jinja"),
	"chat --system": func(f *flagRig) {
		base := []string{"--chat-template", "t.jinja", "--seed", "5", "-n", "12"}
		answers(base, "--system", "speak as a heron")(f)
		f.has(f.fails("chat", "-m", "run", "--system", "x"), `needs a chat template`)
	},
}

// chatty exports run with a template of its own, once.
func (f *flagRig) chatty() {
	f.Helper()
	if !f.exists("chatty") {
		f.ok("export", "run", "chatty", "--chat-template", "t.jinja", "-q")
	}
}
