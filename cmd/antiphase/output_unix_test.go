//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOutputToAPipe: a device or a pipe that is named for an output is written to. It is never replaced by a file, as
// one rename in /dev would do it to the whole machine.
func TestOutputToAPipe(t *testing.T) {
	dir := trainedRun(t)
	if err := os.WriteFile(filepath.Join(dir, "text.txt"), []byte("a few words to count, and a few more"),
		0o644); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // for writing too, so that neither end waits for the other
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan int, 1)
	go func() {
		buf, total := make([]byte, 1<<16), 0
		for {
			n, err := reader.Read(buf)
			if total += n; err != nil {
				read <- total
				return
			}
		}
	}()
	for _, args := range [][]string{
		{"tokenizer", "train", "text.txt", "--vocab", "258", "--out", "pipe"},
		{"data", "show", "run", "--step", "1", "--out", "pipe"},
		{"logits", "-m", "run", "--ids", "1,2", "--out", "pipe"},
		{"attend", "-m", "run", "-p", "abc", "--out", "pipe"},
		{"report", "run", "--output", "pipe"},
		{"pack", "run", "--out", "pipe"},
	} {
		call(t, dir, 0, append(args, "-q")...)
		if st, err := os.Lstat(pipe); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
			t.Fatalf("antiphase %q left %v (%v) in place of the pipe", args, st.Mode(), err)
		}
	}
	reader.Close()
	if n := <-read; n == 0 {
		t.Error("nothing was written to the pipe")
	}
}
