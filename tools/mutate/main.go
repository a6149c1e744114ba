// Command mutate plants bugs one at a time and reports which of them the tests detect.
//
// Bugs are data, tools/mutate/bugs.json (and the other lists): a file, a text that occurs in it exactly once, its
// replacement, and the packages whose tests should detect it. Nothing in the tree is changed: the toolchain gets the
// altered file as an overlay.
//
//	go run tools/mutate/main.go                 # all of them, from the repository's root
//	go run tools/mutate/main.go -run tokenizer  # those whose name matches
//	go run tools/mutate/main.go -list           # print them
//
// It exits with 1 if a bug survives or its tests run out of time, and with 2 if one cannot be planted: then the code
// has changed, and the list must be updated.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// bug is one wrong change.
type bug struct {
	Name  string   `json:"name"`  // package: what is broken
	File  string   `json:"file"`  // relative to the root
	Old   string   `json:"old"`   // occurs in it exactly once
	New   string   `json:"new"`   // the bug
	Tests []string `json:"tests"` // packages, and perhaps -run NAME
}

func main() {
	list := flag.Bool("list", false, "print the bugs and stop")
	run := flag.String("run", "", "only bugs whose name matches this expression")
	limit := flag.Duration("timeout", 5*time.Minute, "time for the tests of one bug")
	path := flag.String("bugs", filepath.Join("tools", "mutate", "bugs.json"), "the list")
	flag.Parse()
	bugs, err := read(*path, *run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	killed, lived, late, lost := 0, 0, 0, 0
	for _, b := range bugs {
		if *list {
			fmt.Printf("%-60s %s\n", b.Name, b.File)
			continue
		}
		begin := time.Now()
		by, err := b.try(*limit)
		switch {
		case err != nil:
			lost++
			fmt.Printf("LOST     %s: %v\n", b.Name, err)
		case by == outOfTime:
			late++
			fmt.Printf("LATE     %s: no test failed within %v\n", b.Name, *limit)
		case by != "":
			killed++
			fmt.Printf("killed   %s (%.0fs, %s)\n", b.Name, time.Since(begin).Seconds(), by)
		default:
			lived++
			fmt.Printf("SURVIVED %s (%s)\n", b.Name, b.File)
		}
	}
	if *list {
		return
	}
	fmt.Printf("%d bugs: %d killed, %d survived, %d ran out of time, %d could not be planted\n", len(bugs), killed,
		lived, late, lost)
	switch {
	case lost > 0:
		os.Exit(2)
	case lived+late > 0:
		os.Exit(1)
	}
}

func read(path, match string) ([]bug, error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all, out []bug
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, x := range all {
		if re.MatchString(x.Name) {
			out = append(out, x)
		}
	}
	return out, nil
}

// outOfTime stands for a test that failed: none did within the limit.
const outOfTime = "out of time"

// failed is a test that failed, in the output of go test.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// try plants the bug and runs its tests. It returns the name of the first that fails, so that one can tell whether it
// failed because of the bug; "" if all pass.
func (b bug) try(limit time.Duration) (by string, err error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := b.plant(dir)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	out, err := goRun(limit, append([]string{"test", "-vet=off", "-failfast", "-overlay", overlay}, b.Tests...)...)
	name := failed.FindStringSubmatch(out)
	switch {
	case strings.Contains(out, "[build failed]"):
		return "", fmt.Errorf("the bug does not compile: %s", firstLine(out))
	case err == nil:
		return "", nil
	case name != nil:
		return name[1], nil
	case time.Since(begin) >= limit:
		return outOfTime, nil
	}
	return "not by a test: " + firstLine(out), nil
}

// plant writes the altered file and the overlay that names it.
func (b bug) plant(dir string) (string, error) {
	text, err := os.ReadFile(b.File)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), b.Old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, want once", b.File, firstLine(b.Old), n)
	}
	from, err := filepath.Abs(b.File)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(b.File))
	if err := os.WriteFile(to, []byte(strings.Replace(string(text), b.Old, b.New, 1)), 0o666); err != nil {
		return "", err
	}
	j, err := json.Marshal(map[string]map[string]string{"Replace": {from: to}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, j, 0o666)
}

func goRun(limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	return string(out), err
}

// firstLine is the first non-empty line of a text.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}
