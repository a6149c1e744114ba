package data

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"

	"antiphase/internal/vfs"
)

func (o BuildOptions) withDefaults() (BuildOptions, error) {
	o.FS = vfs.Or(o.FS)
	if o.ShardTokens == 0 {
		o.ShardTokens = 1 << 26
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.ShardTokens < 0 || o.MaxTokens < 0 || o.Workers < 0 {
		return o, fmt.Errorf("data: build: ShardTokens %d, MaxTokens %d, Workers %d: none may be negative",
			o.ShardTokens, o.MaxTokens, o.Workers)
	}
	if !(o.HeldOut >= 0 && o.HeldOut < 1) {
		return o, fmt.Errorf("data: build: HeldOut %v, want a share from 0 to below 1", o.HeldOut)
	}
	if err := checkShares(o.Shares); err != nil {
		return o, fmt.Errorf("data: build: %w", err)
	}
	if o.HeldOutBy == "" {
		o.HeldOutBy = ByPieces
	}
	if o.HeldOutBy != ByPieces && o.HeldOutBy != ByDocuments {
		return o, fmt.Errorf("data: build: HeldOutBy %q, want %q or %q", o.HeldOutBy, ByPieces, ByDocuments)
	}
	return o, nil
}

// newManifest fills in everything known before the first document is read. Fingerprints are taken now, so a file that
// changes while it is read will not match later.
func newManifest(src []Source, enc Encoder, opt BuildOptions) (*Manifest, error) {
	if len(src) == 0 {
		return nil, errors.New("data: build: no sources")
	}
	if opt.Shares != nil && len(opt.Shares) != len(src) {
		return nil, fmt.Errorf("data: build: %d shares for %d sources", len(opt.Shares), len(src))
	}
	vocab := enc.Vocab()
	if vocab < 1 || vocab > maxVocab {
		return nil, fmt.Errorf("data: build: encoder has a vocabulary of %d, want 1 to %d", vocab, maxVocab)
	}
	m := &Manifest{Format: manifestFormat, Tokenizer: enc.Hash(), Vocab: vocab, HeldOut: opt.HeldOut,
		HeldOutBy: opt.HeldOutBy}
	if eos, ok := enc.EOS(); ok {
		if eos < 0 || int(eos) >= vocab {
			return nil, fmt.Errorf("data: build: encoder's end-of-text id %d is outside its vocabulary of %d", eos,
				vocab)
		}
		m.EOS = &eos
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %v %d\n", m.contentHash(), opt.ShardTokens, opt.HeldOut, opt.MaxTokens)
	if opt.HeldOutBy != ByDocuments { // once the only way: such sets are reused
		fmt.Fprintf(h, "by %s of %d\n", opt.HeldOutBy, pieceTokens)
	}
	if opt.Shares != nil {
		fmt.Fprintf(h, "shares %v\n", opt.Shares)
	}
	known := true
	for i, s := range src {
		info := SourceInfo{Name: s.Name()}
		if opt.Shares != nil {
			info.Share = opt.Shares[i]
		}
		if f, ok := s.(Fingerprinter); ok {
			var err error
			if info.Fingerprint, err = f.Fingerprint(); err != nil {
				return nil, fmt.Errorf("data: build: source %s: %w", s.Name(), err)
			}
		}
		known = known && info.Fingerprint != ""
		fmt.Fprintf(h, "%q %q\n", info.Name, info.Fingerprint)
		m.Sources = append(m.Sources, info)
	}
	if known {
		m.Inputs = hex.EncodeToString(h.Sum(nil))
	}
	return m, nil
}
