package vfs

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// Sum hashes and counts the bytes actually written through it.
type Sum struct {
	Bytes int64
	w     io.Writer
	h     hash.Hash
}

// NewSum writes to w.
func NewSum(w io.Writer) *Sum { return &Sum{w: w, h: sha256.New()} }

// Write implements io.Writer.
func (s *Sum) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.h.Write(p[:n]) // never fails
	s.Bytes += int64(n)
	return n, err
}

// SHA256 is the hash so far, hexadecimal in lower case.
func (s *Sum) SHA256() string { return hex.EncodeToString(s.h.Sum(nil)) }
