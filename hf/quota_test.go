package hf

import (
	"strings"
	"testing"

	"antiphase/internal/quota"
)

// TestParseMemory: no configuration makes reading a folder take much more than its files, and nothing is allocated for
// sizes that are only claimed.
func TestParseMemory(t *testing.T) {
	for name, change := range map[string]dict{
		"as it is": {}, "vocabulary": {"vocab_size": 1 << 30}, "layers": {"num_hidden_layers": 16000},
		"width":   {"hidden_size": 1 << 30},
		"context": {"max_position_embeddings": 1 << 27}, "inner": {"intermediate_size": 1 << 30},
		"heads":   {"num_attention_heads": 1 << 15},
		"unknown": {"x": strings.Repeat("x", 500000)},
	} {
		b := encode(t, with(small("llama"), change))
		dir := t.TempDir()
		write(t, dir, "config.json", b)
		quota.Check(t, name, len(b), 60, func() {
			if f, err := Load(dir); err == nil {
				f.Close()
			}
		})
	}
	for name, text := range map[string]string{"brackets": strings.Repeat("[", 1<<19),
		"objects": strings.Repeat(`{"a":`, 1<<17)} {
		quota.Check(t, name, len(text), 60, func() { _, _ = parse([]byte(text), nil) })
	}
}
