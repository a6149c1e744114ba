package safetensors

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGoldenFiles reads files written by other programs, found under the folders of ANTIPHASE_GOLDEN, and writes them
// again. The reference library writes its header without spaces; of such a file the bytes must be the same, order and
// padding included.
func TestGoldenFiles(t *testing.T) {
	var paths []string
	for _, dir := range filepath.SplitList(os.Getenv("ANTIPHASE_GOLDEN")) {
		for _, pattern := range []string{"*.safetensors", "*/*.safetensors"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, found...)
		}
	}
	if len(paths) == 0 {
		t.Skip("no files under ANTIPHASE_GOLDEN")
	}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		var entries []Entry
		for _, info := range f.Infos() {
			b, _ := f.Bytes(info.Name)
			entries = append(entries, FromBytes(info.Name, info.DType, info.Shape, b))
		}
		got := write(t, entries, f.Metadata())
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if reference := !bytes.Contains(want[:f.head.start], []byte(`": `)); reference && !bytes.Equal(got, want) {
			t.Errorf("%s: written again, the bytes differ", path)
		}
		if again, err := Parse(got); err != nil || len(again.Names()) != len(f.Names()) {
			t.Errorf("%s: written again, tensors are missing (%v)", path, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
