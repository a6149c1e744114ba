package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A macro of arm64 is the instruction that its comment says, by the word of binutils.
func TestDisassemblyARM(t *testing.T) {
	tool, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("no aarch64-linux-gnu-objdump here (Debian: binutils-aarch64-linux-gnu)")
	}
	generate()
	var code bytes.Buffer
	var want []string
	macro := regexp.MustCompile(`WORD \$(0x[0-9A-F]+) // (.*)`)
	for _, line := range strings.Split(string(missingHeader(missingARM)), "\n") {
		if m := macro.FindStringSubmatch(line); m != nil {
			word, err := strconv.ParseUint(m[1], 0, 32)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(binary.LittleEndian.AppendUint32(nil, uint32(word)))
			want = append(want, m[2])
		}
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, code.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-D", "-b", "binary", "-m", "aarch64", "-M", "no-aliases", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	alias, err := exec.Command(tool, "-D", "-b", "binary", "-m", "aarch64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	plain, short := instructions(out), instructions(alias)
	if len(want) == 0 || len(plain) != len(want) || len(short) != len(want) {
		t.Fatalf("%d macros, %d and %d instructions", len(want), len(plain), len(short))
	}
	for i := range want {
		if want[i] != plain[i] && want[i] != short[i] {
			t.Errorf("%s is %s", want[i], plain[i])
		}
	}
}

// instructions are the lines of a disassembly without address and code.
func instructions(out []byte) (all []string) {
	for _, line := range strings.Split(string(out), "\n") {
		if f := strings.SplitN(line, "\t", 3); len(f) == 3 {
			all = append(all, strings.ReplaceAll(strings.TrimSpace(f[2]), "\t", " "))
		}
	}
	return all
}
