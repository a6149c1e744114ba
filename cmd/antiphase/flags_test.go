package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// self runs this test binary as the command.
func self(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Args[0] = "antiphase"
	return cmd
}

// call runs the program in dir and returns what it printed; it must end with code.
func call(t *testing.T, dir string, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := self(args...)
	cmd.Dir = dir
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("antiphase %s: exit code %d (%v), want %d\n%s", strings.Join(args, " "), got, err, code, errw.String())
	}
	return out.String(), errw.String()
}

// samples runs generate --json.
func samples(t *testing.T, dir string, args ...string) (list []sample) {
	t.Helper()
	out, _ := call(t, dir, 0, append([]string{"generate", "-m", "run", "--json", "-q"}, args...)...)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var s sample
		if err := d.Decode(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// trainedRun makes a small run called run in a new folder.
func trainedRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	call(t, dir, 0, "train", "--size", "nano", "--dir", "run", "-q")
	return dir
}

// TestGenerateFlags: what each flag of generate does to the text.
func TestGenerateFlags(t *testing.T) {
	dir := trainedRun(t)
	base := samples(t, dir, "--seed", "7", "-n", "24", "--ignore-eos", "abc")[0]
	if len(base.IDs) != 24 || base.Reason != "length" || base.Full || base.Prompt != "abc" || base.Seed != 7 {
		t.Fatalf("%+v", base)
	}
	one := func(args ...string) sample {
		t.Helper()
		return samples(t, dir, append(args, "--ignore-eos", "abc")...)[0]
	}
	if again := one("--seed", "7", "-n", "24"); again.Text != base.Text {
		t.Error("the same seed gives another text")
	}
	if other := one("--seed", "8", "-n", "24"); slices.Equal(other.IDs, base.IDs) {
		t.Error("another seed gives the same text")
	}
	two := samples(t, dir, "--seed", "7", "-n", "24", "--ignore-eos", "--num-samples", "2", "abc")
	if len(two) != 2 || two[0].Text != base.Text || two[1].Seed != 8 ||
		two[1].Text != one("--seed", "8", "-n", "24").Text {
		t.Errorf("samples of one call are %+v", two)
	}
	greedy := one("--temperature", "0", "-n", "24")
	if k1 := one("--top-k", "1", "-n", "24", "--seed", "3"); !slices.Equal(k1.IDs, greedy.IDs) {
		t.Error("--top-k 1 is not greedy")
	}
	if p0 := one("--top-p", "0.0001", "-n", "24", "--seed", "3"); !slices.Equal(p0.IDs, greedy.IDs) {
		t.Error("--top-p 0.0001 is not greedy")
	}
	if m1 := one("--min-p", "1", "-n", "24", "--seed", "3"); !slices.Equal(m1.IDs, greedy.IDs) {
		t.Error("--min-p 1 is not greedy")
	}
	if hot := one("--temperature", "100", "-n", "24", "--seed", "7"); slices.Equal(hot.IDs, base.IDs) {
		t.Error("--temperature 100 changes nothing")
	}
	if r := one("--temperature", "0", "-n", "24", "--repetition-penalty",
		"1000"); repeated(r.IDs) >= repeated(greedy.IDs) {
		t.Errorf("--repetition-penalty: %d repeated ids, %d without it", repeated(r.IDs), repeated(greedy.IDs))
	}
	testStop(t, base, one)
	full := one("--temperature", "0", "-n", "500")
	if !full.Full || full.Reason != "length" || len(full.IDs) >= 64 {
		t.Errorf("a full context: %d tokens, %q, full %v", len(full.IDs), full.Reason, full.Full)
	}
	_, note := call(t, dir, 0, "generate", "-m", "run", "-n", "500", "--temperature", "0", "--ignore-eos", "abc")
	if want := fmt.Sprintf("stopped after %d tokens: the context of 64 tokens is full (the prompt has 4)",
		len(full.IDs)); !strings.Contains(note, want) {
		t.Errorf("%q does not say %q", note, want)
	}
}

// testStop cuts base's text at one of its own characters.
func testStop(t *testing.T, base sample, one func(...string) sample) {
	t.Helper()
	r := []rune(base.Text)
	i := slices.IndexFunc(r, func(c rune) bool { return c > ' ' && c < 127 })
	if i < 0 {
		t.Fatalf("the text %q has no character to stop at", base.Text)
	}
	stop := string(r[i])
	want, _, _ := strings.Cut(base.Text, stop)
	if s := one("--seed", "7", "-n", "24", "--stop", stop); s.Text != want || s.Reason != "stop" {
		t.Errorf("--stop %q: %q ended by %s, want %q", stop, s.Text, s.Reason, want)
	}
}

func repeated(ids []int32) int {
	return len(ids) - len(slices.Compact(slices.Sorted(slices.Values(ids))))
}

// TestPromptFlags: where the prompt comes from, and what is printed of it.
func TestPromptFlags(t *testing.T) {
	dir := trainedRun(t)
	if err := os.WriteFile(filepath.Join(dir, "p.txt"), []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	text := func(args ...string) string {
		t.Helper()
		out, _ := call(t, dir, 0, append([]string{"generate", "-m", "run", "--temperature", "0", "-n", "8", "-q"},
			args...)...)
		return out
	}
	base := text("abc")
	if text("-p", "abc") != base || text("--prompt-file", "p.txt") != base {
		t.Error("a prompt is not the same from everywhere")
	}
	if s := samples(t, dir, "--prompt-file", "p.txt", "-n", "1")[0]; s.Prompt != "abc" {
		t.Errorf("the prompt of the file is %q", s.Prompt)
	}
	if got := text("--echo", "abc"); got != "abc"+base {
		t.Errorf("--echo printed %q, the text is %q", got, base)
	}
	if got := text("--echo", "--num-samples", "2", "abc"); strings.Count(got,
		"abc"+strings.TrimSuffix(base, "\n")) != 2 {
		t.Errorf("--echo with samples printed %q", got)
	}
	lp := samples(t, dir, "--temperature", "0", "-n", "3", "--logprobs", "2", "abc")[0]
	if len(lp.Tokens) != 3 || len(lp.Logprob) != 3 || len(lp.Top) != 3 || len(lp.Top[0]) != 2 ||
		lp.Top[0][0].ID != lp.IDs[0] ||
		lp.Top[0][0].Logprob != lp.Logprob[0] || lp.Top[0][0].Token != lp.Tokens[0] ||
		strings.Join(lp.Tokens, "") != lp.Text {
		t.Errorf("--logprobs: %+v", lp)
	}
	out, _ := call(t, dir, 0, "generate", "-m", "run", "--temperature", "0", "-n", "1", "--logprobs", "1",
		"--json", "-q", "abc")
	for _, key := range []string{`"id":`, `"token":`, `"logprob":`, `"tokens":`} {
		if !strings.Contains(out, key) {
			t.Errorf("%s has no key %s", out, key)
		}
	}
}

// TestThreadsFlag: the device reports how many threads it has.
func TestThreadsFlag(t *testing.T) {
	for _, n := range []string{"1", "3"} {
		out, _ := call(t, t.TempDir(), 0, "doctor", "--json", "--device", "cpu", "--threads", n)
		var facts map[string][]string
		if err := json.Unmarshal([]byte(out), &facts); err != nil {
			t.Fatal(err)
		}
		if name := facts["device"][0]; !strings.Contains(name, n+" thread") {
			t.Errorf("--threads %s: the device is %q", n, name)
		}
	}
}

// TestForceFlag: a changed recipe continues only when forced, and then with the change.
func TestForceFlag(t *testing.T) {
	dir := t.TempDir()
	call(t, dir, 0, "train", "--size", "nano", "--dir", "run", "--steps", "2", "-q")
	changed := []string{"train", "--size", "nano", "--dir", "run", "--steps", "3", "--set", "optim.lr=0.0005",
		"-q", "--json"}
	if _, text := call(t, dir, 2, changed...); !strings.Contains(text, "optim.lr") {
		t.Errorf("the refusal does not name the change: %s", text)
	}
	out, _ := call(t, dir, 0, append(changed, "--force")...)
	if !strings.Contains(out, `"steps": 3`) || !strings.Contains(out, `"resumed_from": 2`) {
		t.Errorf("--force printed %s", out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "run", "recipe.json"))
	if err != nil || !strings.Contains(string(b), `"lr": 0.0005`) {
		t.Errorf("the recipe is %s (%v)", b, err)
	}
}

// TestEvalFlags: --limit caps the samples, --seed decides which they are.
func TestEvalFlags(t *testing.T) {
	dir := trainedRun(t)
	questions := func(name string, args ...string) []string {
		t.Helper()
		call(t, dir, 0, append([]string{"eval", "-m", "run", "--log-samples", "--output", name, "-q"}, args...)...)
		var all []string
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				b, rerr := os.ReadFile(path)
				all = append(all, string(b))
				err = rerr
			}
			return err
		})
		if err != nil || len(all) == 0 {
			t.Fatalf("%s has no samples (%v)", name, err)
		}
		return regexp.MustCompile(`"context":"[^"]*"`).FindAllString(strings.Join(all, ""), -1)
	}
	three := questions("three", "--tasks", "arc_easy", "--limit", "3")
	if n := len(questions("five", "--tasks", "arc_easy", "--limit", "5")); len(three) != 3 || n != 5 {
		t.Errorf("--limit 3 gave %d samples, --limit 5 %d", len(three), n)
	}
	if same := questions("same", "--tasks", "arc_easy", "--limit", "3", "--seed", "1"); !slices.Equal(same, three) {
		t.Errorf("the same seed asks %q and then %q", three, same)
	}
	if other := questions("other", "--tasks", "arc_easy", "--limit", "3", "--seed", "2"); slices.Equal(other, three) {
		t.Error("another seed asks the same questions")
	}
}

// TestExportContext: an export states the context that the run was trained on.
func TestExportContext(t *testing.T) {
	dir := trainedRun(t) // sequences of 32 in a context of 64
	call(t, dir, 0, "export", "run", "hf", "-q")
	for name, want := range map[string]string{"config.json": `"max_position_embeddings": 32`,
		"tokenizer_config.json": `"model_max_length": 32`} {
		b, err := os.ReadFile(filepath.Join(dir, "hf", name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s does not say %s (%v)\n%s", name, want, err, b)
		}
	}
}

// TestChatForgets: a conversation that outgrows the context forgets its beginning and continues.
func TestChatForgets(t *testing.T) {
	dir := trainedRun(t)
	for _, template := range []string{"", "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if " +
		"add_generation_prompt %}[assistant]{% endif %}"} {
		args := []string{"chat", "-m", "run", "--seed", "1", "--ignore-eos"}
		if template != "" {
			if err := os.WriteFile(filepath.Join(dir, "t.jinja"), []byte(template), 0o666); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--chat-template", "t.jinja", "-n", "10")
		}
		cmd := self(args...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(strings.Repeat("hello you\n", 6) + strings.Repeat("x", 100) + "\nhi\n")
		var out, errw bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errw
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("%v, want exit 1: a line was not answered", err)
		}
		if n := strings.Count(errw.String(), "is full: the oldest"); n < 4 {
			t.Errorf("%d turns made room:\n%s", n, errw.String())
		}
		if n := strings.Count(errw.String(), "error: "); n != 2 || !strings.Contains(errw.String(), "error: the ") {
			t.Errorf("%d errors, want one about a text longer than the context, and the end:\n%s", n, errw.String())
		}
	}
}

// TestHintsWork: what a finished run suggests is a command that works as it stands.
func TestHintsWork(t *testing.T) {
	dir := t.TempDir()
	_, text := call(t, dir, 0, "train", "--size", "nano", "--dir", "run", "--steps", "1")
	_, hint, ok := strings.Cut(text, "try: ")
	hint = strings.TrimSpace(strings.SplitN(hint, "\n", 2)[0])
	if want := `antiphase generate --model run "Once"`; !ok || hint != want {
		t.Errorf("the hint is %q, want %q", hint, want)
	}
	for arg, want := range map[string]string{
		filepath.Join("tmp", "go-build123", "b001", "exe", "antiphase"): "go run ./cmd/antiphase", // of go run
		"./antiphase":     "./antiphase",
		"./bin/antiphase": "./bin/antiphase",
	} {
		if got := calledAs(arg); got != want {
			t.Errorf("called as %q it is %q, want %q", arg, got, want)
		}
	}
}
