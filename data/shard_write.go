package data

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"

	"antiphase/internal/vfs"
)

// shardWriter streams documents into one shard file. The header is written last, so a truncated file has no valid
// header.
type shardWriter struct {
	fsys   vfs.FS
	path   string
	f      vfs.File
	w      *bufio.Writer
	header shardHeader
	index  []uint64
	buf    []byte
	part   int // of the set, see ShardInfo
}

func createShard(fsys vfs.FS, path string, vocab int) (*shardWriter, error) {
	f, err := fsys.Create(path)
	if err != nil {
		return nil, fmt.Errorf("data: shard: %w", err)
	}
	s := &shardWriter{fsys: fsys, path: path, f: f, w: bufio.NewWriterSize(f, 1<<18), index: []uint64{0}}
	s.header = shardHeader{width: tokenWidth(vocab), vocab: uint32(vocab)}
	if _, err := s.w.Write(make([]byte, headerSize)); err != nil {
		f.Close()
		return nil, fmt.Errorf("data: shard %s: %w", path, err)
	}
	return s, nil
}

// add appends one document, which must not be empty and whose ids must be in the vocabulary.
func (s *shardWriter) add(ids []int32) error {
	s.buf = s.buf[:0]
	for _, id := range ids {
		if s.header.width == 2 {
			s.buf = binary.LittleEndian.AppendUint16(s.buf, uint16(id))
		} else {
			s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(id))
		}
	}
	s.header.tokensCRC = crc32.Update(s.header.tokensCRC, castagnoli, s.buf)
	s.header.tokens += uint64(len(ids))
	s.header.docs++
	s.index = append(s.index, s.header.tokens)
	_, err := s.w.Write(s.buf)
	return err
}

// finish writes index and header, syncs, and reads the file back for its digest.
func (s *shardWriter) finish(split string) (info ShardInfo, err error) {
	defer func() { err = errors.Join(err, s.f.Close()) }()
	end := headerSize + s.header.tokens*uint64(s.header.width)
	s.header.indexOffset = (end + 7) &^ 7
	s.w.Write(make([]byte, s.header.indexOffset-end))
	var b [8]byte
	for _, off := range s.index {
		binary.LittleEndian.PutUint64(b[:], off)
		s.header.indexCRC = crc32.Update(s.header.indexCRC, castagnoli, b[:])
		s.w.Write(b[:])
	}
	if err := s.w.Flush(); err != nil { // bufio keeps the first write error
		return info, fmt.Errorf("data: shard: %w", err)
	}
	if _, err := s.f.WriteAt(s.header.encode(), 0); err != nil {
		return info, fmt.Errorf("data: shard: %w", err)
	}
	if err := s.f.Sync(); err != nil {
		return info, fmt.Errorf("data: shard: %w", err)
	}
	sum, n, err := digest(s.fsys, s.path)
	if err != nil {
		return info, fmt.Errorf("data: shard: %w", err)
	}
	return ShardInfo{Name: filepath.Base(s.path), Split: split, Part: s.part, Bytes: n, SHA256: sum,
		Docs: int64(s.header.docs), Tokens: int64(s.header.tokens)}, nil
}

// digest returns the hex SHA-256 and length of a whole file.
func digest(fsys vfs.FS, path string) (sum string, n int64, err error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	n, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, errors.Join(err, f.Close())
}
