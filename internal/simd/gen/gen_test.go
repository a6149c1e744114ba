package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The assembly in the tree is what the generator writes.
func TestUnchanged(t *testing.T) {
	for name, want := range generate() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is not what gen writes: run go generate in internal/simd", name)
		}
	}
}
