package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"antiphase/internal/vfs"
)

const (
	manifestName   = "manifest.json"
	manifestFormat = 2
	maxManifest    = 1 << 28 // bytes: a million shards
	oldestFormat   = 1       // whole documents held out, no counts of dropped ones
)

// Names of the two splits.
const (
	Train = "train"
	Valid = "valid"
)

// Manifest describes a token set: its inputs, and every shard with its size and digest.
type Manifest struct {
	Format    int          `json:"format"`
	Tokenizer string       `json:"tokenizer"`     // Encoder.Hash
	Vocab     int          `json:"vocab"`         // ids are below it
	EOS       *int32       `json:"eos,omitempty"` // last token of every document; absent: none
	Sources   []SourceInfo `json:"sources"`
	Inputs    string       `json:"inputs,omitempty"` // digest of all that decides the content; absent: never reused
	HeldOut   float64      `json:"held_out"`
	HeldOutBy string       `json:"held_out_by,omitempty"` // absent: documents
	Shards    []ShardInfo  `json:"shards"`
	Docs      int64        `json:"docs"`
	Tokens    int64        `json:"tokens"`
	Hash      string       `json:"hash"` // digest of the content: tokenizer and shards
}

// SourceInfo is one source at the time the set was built.
type SourceInfo struct {
	Name        string  `json:"name"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Docs        int64   `json:"docs"`               // read
	Tokens      int64   `json:"tokens"`             // in both splits
	HeldOut     int64   `json:"held_out,omitempty"` // of them in split valid
	Repeated    int64   `json:"repeated,omitempty"` // tokens in neither: they repeat what is held out
	Skipped     Skipped `json:"skipped,omitzero"`   // dropped documents
	Share               // of a mixture; zero if the set is not mixed
}

// ShardInfo is one shard of a set.
type ShardInfo struct {
	Name   string `json:"name"`
	Split  string `json:"split"`
	Part   int    `json:"part,omitempty"` // its documents are of this source, counted from 1; 0: of any
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Docs   int64  `json:"docs"`
	Tokens int64  `json:"tokens"`
}

// ReadManifest reads and checks dir/manifest.json; [OpenSet] checks the shards.
func ReadManifest(dir string) (*Manifest, error) { return ReadManifestFS(vfs.OS{}, dir) }

// ReadManifestFS is ReadManifest on a file system.
func ReadManifestFS(fsys vfs.FS, dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	b, err := vfs.ReadFile(fsys, path, maxManifest)
	if err != nil {
		return nil, fmt.Errorf("data: %s is not a token set: %w", dir, err)
	}
	return parseManifest(path, b)
}

func parseManifest(path string, b []byte) (*Manifest, error) {
	// The version is read first, so that a newer file is called newer and not malformed.
	var v struct{ Format int }
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, corrupt(path, "not a manifest: %v", err)
	}
	if v.Format < oldestFormat || v.Format > manifestFormat {
		return nil, corrupt(path, "manifest format %d, this program reads formats %d to %d", v.Format, oldestFormat,
			manifestFormat)
	}
	m := new(Manifest)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, corrupt(path, "%v", err)
	}
	if err := m.check(path); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manifest) check(path string) error {
	if m.Vocab < 1 || m.Vocab > maxVocab {
		return corrupt(path, "vocabulary of %d, want 1 to %d", m.Vocab, maxVocab)
	}
	if m.EOS != nil && (*m.EOS < 0 || int(*m.EOS) >= m.Vocab) {
		return corrupt(path, "end-of-text id %d is outside the vocabulary of %d", *m.EOS, m.Vocab)
	}
	var docs, tokens int64
	seen := map[string]bool{}
	for i := range m.Shards {
		s := &m.Shards[i]
		if err := s.check(path); err != nil {
			return err
		}
		if s.Part < 0 || s.Part > len(m.Sources) {
			return corrupt(path, "shard %q belongs to source %d of %d", s.Name, s.Part, len(m.Sources))
		}
		if seen[s.Name] {
			return corrupt(path, "shard %q is listed twice", s.Name)
		}
		seen[s.Name] = true
		if s.Tokens > math.MaxInt64-tokens { // and documents are no more than tokens
			return corrupt(path, "shard %q: totals overflow", s.Name)
		}
		docs, tokens = docs+s.Docs, tokens+s.Tokens
	}
	if docs != m.Docs || tokens != m.Tokens {
		return corrupt(path, "totals of %d documents and %d tokens, its shards add up to %d and %d", m.Docs,
			m.Tokens, docs, tokens)
	}
	if want := m.contentHash(); m.Hash != want {
		return corrupt(path, "hash %q, its content hashes to %q (edited by hand?)", m.Hash, want)
	}
	return nil
}

func (s *ShardInfo) check(path string) error {
	// A name with a separator could reach outside the folder.
	if s.Name == "" || s.Name != filepath.Base(s.Name) || strings.ContainsAny(s.Name, `/\:`) ||
		!filepath.IsLocal(s.Name) {
		return corrupt(path, "shard name %q is not a plain file name", s.Name)
	}
	if s.Split != Train && s.Split != Valid {
		return corrupt(path, "shard %q: split %q, want %q or %q", s.Name, s.Split, Train, Valid)
	}
	if s.Bytes < headerSize || s.Docs < 1 || s.Tokens < s.Docs {
		return corrupt(path, "shard %q: %d bytes, %d documents, %d tokens is impossible", s.Name, s.Bytes,
			s.Docs, s.Tokens)
	}
	if sum, err := hex.DecodeString(s.SHA256); err != nil || len(sum) != sha256.Size {
		return corrupt(path, "shard %q: sha256 %q is not 64 hex digits", s.Name, s.SHA256)
	}
	return nil
}

// contentHash covers only what a training run sees: not names, paths or times.
func (m *Manifest) contentHash() string {
	h := sha256.New()
	eos := int64(-1)
	if m.EOS != nil {
		eos = int64(*m.EOS)
	}
	// The 1 belongs to this text: the same tokens have the same hash in every format of the manifest.
	fmt.Fprintf(h, "antiphase set 1\ntokenizer %q\nvocab %d eos %d\n", m.Tokenizer, m.Vocab, eos)
	for _, s := range m.Shards {
		fmt.Fprintf(h, "%s %d %d %s", s.Split, s.Docs, s.Tokens, strings.ToLower(s.SHA256))
		if s.Part > 0 {
			fmt.Fprintf(h, " %d", s.Part)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}
