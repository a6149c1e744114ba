package main

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/tokenizer"
)

// TestService runs the service on a folder of Hugging Face's making, with the byte tokenizer beside it.
func TestService(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join("..", "..", "hf", "testdata", "diffllama-mha")
	for _, name := range []string{"config.json", "generation_config.json", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := tokenizer.Bytes().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	e, tok, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := httptest.NewServer(continuations(e, tok))
	defer s.Close()
	res, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("Once"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || len(b) == 0 || res.StatusCode != 200 {
		t.Errorf("%d %q %v", res.StatusCode, b, err)
	}
}
