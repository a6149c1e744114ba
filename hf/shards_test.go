package hf

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/safetensors"
	"antiphase/internal/vfs/vfstest"
	"antiphase/layer"
)

// writeFolder writes a folder with one weight file in F32.
func writeFolder(t *testing.T, config map[string]any, tensors map[string][]float32) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "config.json", encode(t, config))
	write(t, dir, weightsFile, weights(t, config, tensors, "F32"))
	return dir
}

func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// weights encodes tensors in the shapes of config's layout; those it does not know become vectors.
func weights(t *testing.T, config map[string]any, tensors map[string][]float32, d safetensors.DType) []byte {
	t.Helper()
	shapes := map[string][]int{}
	for p := range mustParse(t, config).layout.parts() {
		for _, q := range p.pieces {
			shapes[q.name] = q.shape()
		}
	}
	var list []safetensors.Entry
	for name, x := range tensors {
		if shapes[name] == nil {
			shapes[name] = []int{len(x)}
		}
		list = append(list, safetensors.FromFloat32s(name, d, shapes[name], x))
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, list, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeSharded spreads tensors over two files and an index; edit may change the weight map.
func writeSharded(t *testing.T, edit func(weightMap map[string]string)) string {
	t.Helper()
	c := small("diffllama")
	all := tensors(mustParse(t, c).layout, 1)
	dir := t.TempDir()
	weightMap := map[string]string{}
	shards := []map[string][]float32{{}, {}}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		shards[i%2][name] = all[name]
		weightMap[name] = shardNames[i%2]
	}
	edit(weightMap)
	write(t, dir, "config.json", encode(t, c))
	write(t, dir, indexFile, encode(t, dict{"metadata": dict{"total_size": 1}, "weight_map": weightMap}))
	for i, name := range shardNames {
		write(t, dir, name, weights(t, c, shards[i], "BF16"))
	}
	return dir
}

var shardNames = []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}

func TestShards(t *testing.T) {
	dir := writeSharded(t, func(map[string]string) {})
	if !IsFolder(dir) || IsFolder(filepath.Join(dir, "config.json")) || IsFolder(t.TempDir()) {
		t.Error("IsFolder mistakes a folder")
	}
	m, f, err := Open(ref.New(), dir, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Params.Count() == 0 || f.Config != m.Config {
		t.Error("the model does not have the folder's configuration")
	}
	for name, value := range map[string]string{
		"parent": "../" + shardNames[0], "absolute": filepath.Join(dir, shardNames[0]), "folder": "x/" + shardNames[0],
		"NUL": "a\x00.safetensors", "backslash": `..\` + shardNames[0], "drive": `c:` + shardNames[0],
		"empty": "", "dots": "..",
		"pickle": "pytorch_model.bin", "absent": "other.safetensors", "wrong shard": shardNames[1],
	} {
		dir := writeSharded(t, func(m map[string]string) { m[slices.Sorted(maps.Keys(m))[0]] = value })
		if _, err := Load(dir); err == nil {
			t.Errorf("%s: weight_map with %q was accepted", name, value)
		}
	}
}

// TestLinksStayInside refuses a shard that is a link out of the folder, but follows the cache's links to its blobs.
func TestLinksStayInside(t *testing.T) {
	real := writeSharded(t, func(map[string]string) {})
	move := func(to string) {
		if err := os.Rename(filepath.Join(real, shardNames[0]), to); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "blob.safetensors")
	move(out)
	vfstest.Symlink(t, out, filepath.Join(real, shardNames[0]))
	if _, err := Load(real); err == nil {
		t.Error("a link out of the folder was followed")
	}
	if _, err := ReadFile(real, shardNames[0], 1<<20); err == nil {
		t.Error("a link out of the folder was read")
	}
	if _, err := ReadFile(real, "config.json", 10); err == nil {
		t.Error("more than the limit was read")
	}
	if b, err := ReadFile(real, "config.json", 1<<20); err != nil || len(b) == 0 {
		t.Errorf("config.json: %d bytes, %v", len(b), err)
	}

	cache := filepath.Join(t.TempDir(), "models--org--name")
	snapshot := filepath.Join(cache, "snapshots", "abc")
	for _, d := range []string{snapshot, filepath.Join(cache, "blobs")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"config.json", indexFile, shardNames[1], shardNames[0]} {
		b, err := os.ReadFile(filepath.Join(real, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(cache, "blobs"), name+".blob", b)
		vfstest.Symlink(t, "../../blobs/"+name+".blob", filepath.Join(snapshot, name))
	}
	f, err := Load(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func TestLoadRefuses(t *testing.T) {
	c := small("llama")
	l := mustParse(t, c).layout
	for _, x := range []struct {
		name, text string
		config     map[string]any
		edit       func(m map[string][]float32)
	}{
		{"missing", `"model.norm.weight" is missing`, c,
			func(m map[string][]float32) { delete(m, "model.norm.weight") }},
		{"missing head", `"lm_head.weight" is missing`, c,
			func(m map[string][]float32) { delete(m, "lm_head.weight") }},
		{"extra", `"model.layers.0.self_attn.q_norm.weight" belongs to no part`, c, func(m map[string][]float32) {
			m["model.layers.0.self_attn.q_norm.weight"] = []float32{1}
		}},
		{"extra beside a tied head", `"model.layers.0.self_attn.q_norm.weight" belongs to no part`,
			with(c, dict{"tie_word_embeddings": true}), func(m map[string][]float32) {
				m["model.layers.0.self_attn.q_norm.weight"] = []float32{1}
				m["lm_head.weight"] = m["model.embed_tokens.weight"]
			}},
		{"layers", `"model.layers.2.input_layernorm.weight" is missing`, with(c, dict{"num_hidden_layers": 16000}),
			func(map[string][]float32) {}},
		{"too many layers", "layers: is 1073741824, must be at most 16384", with(c, dict{"num_hidden_layers": 1 << 30}),
			func(map[string][]float32) {}},
		{"long context", "a context of 33554432 tokens takes a rotary table",
			with(c, dict{"max_position_embeddings": 1 << 25}), func(map[string][]float32) {}},
		{"vocabulary", "has shape [32 24], config.json implies [1000000 24]", with(c, dict{"vocab_size": 1000000}),
			func(map[string][]float32) {}},
		{"tied but different", "tie_word_embeddings = true", with(c, dict{"tie_word_embeddings": true}),
			func(map[string][]float32) {}},
	} {
		m := tensors(l, 1)
		x.edit(m)
		dir := t.TempDir()
		write(t, dir, "config.json", encode(t, x.config))
		write(t, dir, weightsFile, weights(t, c, m, "F16"))
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: error %v, want one with %q", x.name, err, x.text)
		}
	}
	dir := t.TempDir()
	write(t, dir, "config.json", encode(t, c))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), weightsFile) {
		t.Errorf("no weights: error %v", err)
	}
	write(t, dir, "pytorch_model.bin", []byte("x"))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "safe_serialization") {
		t.Errorf("pickled weights: error %v, want advice", err)
	}
	write(t, dir, "config.json", append(encode(t, c), bytes.Repeat([]byte(" "), maxConfig)...))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a configuration of over a megabyte: error %v", err)
	}
}

// TestLoadTolerates what older files carry along: derived angles, and a tied output stored again.
func TestLoadTolerates(t *testing.T) {
	c := with(small("llama"), dict{"tie_word_embeddings": true})
	m := tensors(mustParse(t, c).layout, 1)
	m["model.layers.0.self_attn.rotary_emb.inv_freq"] = []float32{1, 0.1, 0.01}
	m["lm_head.weight"] = m["model.embed_tokens.weight"]
	dir := t.TempDir()
	write(t, dir, "config.json", encode(t, c))
	write(t, dir, weightsFile, weights(t, small("llama"), m, "F16"))
	f, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
