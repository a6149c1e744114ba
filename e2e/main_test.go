package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// base is the server's URL.
var base string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e: skipped by -short")
		return
	}
	if runtime.GOOS == "windows" {
		fmt.Println("e2e: skipped: the server is ended by SIGTERM, which Windows cannot send")
		return
	}
	if base = strings.TrimSuffix(os.Getenv("ANTIPHASE_URL"), "/"); base != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "antiphase-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code, err := withServer(dir, m.Run)
	os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withServer builds the program, trains a model for a second, serves it, runs f and ends the server, which must exit
// with 0.
func withServer(dir string, f func() int) (code int, err error) {
	bin := filepath.Join(dir, "antiphase")
	build := exec.Command("go", "build", "-o", bin, "./cmd/antiphase")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return 0, err
	}
	run := filepath.Join(dir, "nano")
	if out, err := exec.Command(bin, "-q", "train", "--size", "nano", "--steps", "60", "--dir",
		run).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("train: %w: %s", err, out)
	}
	serve := exec.Command(bin, "serve", "--model", "nano="+run, "--chat-template", "plain", "--listen", "127.0.0.1:0")
	serve.Env = append(os.Environ(), "ANTIPHASE_API_KEY="+key)
	pipe, err := serve.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := serve.Start(); err != nil {
		return 0, err
	}
	log := ""
	lines := bufio.NewScanner(pipe)
	for base == "" && lines.Scan() {
		log += lines.Text() + "\n"
		if _, url, ok := strings.Cut(lines.Text(), "serving on "); ok {
			base = url
		}
	}
	if base == "" {
		return 0, fmt.Errorf("the server did not begin: %v\n%s", serve.Wait(), log)
	}
	os.Setenv("ANTIPHASE_URL", base)
	go func() {
		for lines.Scan() { // its requests; the pipe must not fill up
		}
	}()
	code = f()
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		return code, err
	}
	if err := serve.Wait(); err != nil {
		return code, fmt.Errorf("the server ended with %w", err)
	}
	return code, nil
}
