package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"antiphase/internal/cores"
	"antiphase/internal/vfs"
)

// Set is an opened token set: its manifest and its mapped shards.
type Set struct {
	Manifest *Manifest
	dir      string
	shards   []*Shard // parallel to Manifest.Shards
}

// TokenizerName is the file in a set's folder that holds its tokenizer, if it was stored there.
const TokenizerName = "tokenizer.json"

// IsSet reports whether dir is the folder of a token set.
func IsSet(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestName))
	return err == nil
}

// OpenSet reads dir/manifest.json and maps its shards. Sizes, headers and document indexes are always checked, and
// every byte's SHA-256 if verify is set. The error names the missing or corrupt shard.
func OpenSet(dir string, verify bool) (*Set, error) { return OpenSetFS(vfs.OS{}, dir, verify) }

// OpenSetFS is OpenSet on a file system.
func OpenSetFS(fsys vfs.FS, dir string, verify bool) (*Set, error) {
	m, err := ReadManifestFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	shards, errs := make([]*Shard, len(m.Shards)), make([]error, len(m.Shards))
	cores.Each(len(shards), func(i int) { shards[i], errs[i] = openListed(fsys, dir, m, &m.Shards[i], verify) })
	s := &Set{Manifest: m, dir: dir, shards: slices.DeleteFunc(shards, func(s *Shard) bool { return s == nil })}
	for _, err := range errs {
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// openListed opens one shard and checks it against its manifest entry.
func openListed(fsys vfs.FS, dir string, m *Manifest, info *ShardInfo, verify bool) (*Shard, error) {
	path := filepath.Join(dir, info.Name)
	st, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, corrupt(path,
			"shard is missing; the manifest lists it with %d bytes: restore it or build the set again", info.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("data: shard: %w", err)
	}
	if st.Size != info.Bytes {
		return nil, corrupt(path, "%d bytes, the manifest says %d: restore it or build the set again",
			st.Size, info.Bytes)
	}
	if verify {
		if err := checkDigest(fsys, path, info.SHA256); err != nil {
			return nil, err
		}
	}
	sh, err := openShard(fsys, path, verify)
	if err != nil {
		return nil, err
	}
	if sh.Docs() != info.Docs || sh.Tokens() != info.Tokens || sh.Vocab() != m.Vocab {
		defer sh.Close()
		return nil, corrupt(path, "holds %d documents, %d tokens, vocabulary %d; the manifest says %d, %d, %d",
			sh.Docs(), sh.Tokens(), sh.Vocab(), info.Docs, info.Tokens, m.Vocab)
	}
	return sh, nil
}

func checkDigest(fsys vfs.FS, path, want string) error {
	got, _, err := digest(fsys, path)
	if err != nil {
		return fmt.Errorf("data: shard %s: %w", path, err)
	}
	if !strings.EqualFold(got, want) {
		return corrupt(path, "sha256 %s, the manifest says %s: restore it or build the set again", got, want)
	}
	return nil
}

// Close unmaps every shard; splits and loaders of the set must not be used afterwards.
func (s *Set) Close() error {
	var errs []error
	for _, sh := range s.shards {
		errs = append(errs, sh.Close())
	}
	s.shards = nil
	return errors.Join(errs...)
}

// Split is one part of a set; its documents are numbered through its shards in manifest order.
type Split struct {
	name   string
	dir    string // of the set
	hash   string // of the set
	eos    *int32
	shards []*Shard
	first  []uint64 // first[i] is the index of shards[i]'s first document; the last entry is the total
	tokens uint64
	parts  []component
	shares []Share // of the parts; nil if the set is not mixed

	sources []string // names of the set's
	partOf  []int    // parallel to shards: the source of each, counted from 1; 0 if any
}

// Verify reads every token of the split and compares checksums. OpenSet with verify does so for all splits, and
// compares digests.
func (s *Split) Verify() error {
	for _, sh := range s.shards {
		if err := sh.verify(); err != nil {
			return err
		}
	}
	return nil
}

// Split returns the split "train" or "valid".
func (s *Set) Split(name string) (*Split, error) {
	sp := &Split{name: name, dir: s.dir, hash: s.Manifest.Hash, eos: s.Manifest.EOS, first: []uint64{0}}
	have := map[string]bool{}
	for i, info := range s.Manifest.Shards {
		have[info.Split] = true
		if info.Split != name {
			continue
		}
		sp.shards, sp.partOf = append(sp.shards, s.shards[i]), append(sp.partOf, info.Part)
		sp.first = append(sp.first, sp.first[len(sp.first)-1]+s.shards[i].header.docs)
		sp.tokens += s.shards[i].header.tokens
	}
	if len(sp.shards) == 0 {
		names := make([]string, 0, len(have))
		for n := range have {
			names = append(names, strconv.Quote(n))
		}
		sort.Strings(names)
		return nil, &SourceError{Source: s.dir,
			Fault: fmt.Sprintf("has no split %q, only %s: %s", name, strings.Join(names, ", "), missingSplit(name))}
	}
	for _, info := range s.Manifest.Sources {
		sp.sources = append(sp.sources, info.Name)
	}
	sp.parts = []component{newComponent("all", sp.eos != nil, sp.shards)}
	return sp, nil
}

// missingSplit says how to get a split that a set lacks.
func missingSplit(name string) string {
	if name == Valid {
		return "give more text, or hold more of it out (data.held_out; data build --held-out)"
	}
	return fmt.Sprintf("there are %s and %s", Train, Valid)
}

// Has reports whether the set has a split.
func (s *Set) Has(name string) bool {
	return slices.ContainsFunc(s.Manifest.Shards, func(i ShardInfo) bool { return i.Split == name })
}

// Name is "train" or "valid".
func (s *Split) Name() string { return s.name }

// Docs is the number of documents.
func (s *Split) Docs() int64 { return int64(s.docs()) }

// Tokens is the number of tokens of one epoch, end-of-text ids included.
func (s *Split) Tokens() int64 { return int64(s.tokens) }

// Document appends the ids of document i, including its end-of-text id, to dst.
func (s *Split) Document(dst []int32, i int64) []int32 {
	if i < 0 || i >= s.Docs() {
		// A caller counts with Docs: an index out of range is a bug, as with a slice.
		panic(fmt.Sprintf("data: document %d of split %q, which has %d", i, s.name, s.Docs()))
	}
	d := s.locate(uint64(i))
	n := len(dst)
	dst = append(dst, make([]int32, d.len())...)
	d.read(dst[n:], 0)
	return dst
}

func (s *Split) docs() uint64 { return s.first[len(s.first)-1] }

// docRef locates one document: tokens [lo, hi) of a shard.
type docRef struct {
	shard  *Shard
	lo, hi uint64
}

// locate finds document i by binary search over the shards.
func (s *Split) locate(i uint64) docRef {
	lo, hi := 0, len(s.shards)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if s.first[mid] <= i {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	sh := s.shards[lo]
	i -= s.first[lo]
	return docRef{sh, sh.offset(i), sh.offset(i + 1)}
}

func (d *docRef) len() uint64 { return d.hi - d.lo }

// read decodes len(dst) tokens beginning `offset` tokens into the document. An id outside the vocabulary means that the
// file changed while mapped or was opened without verify; reading cannot continue.
func (d *docRef) read(dst []int32, offset uint64) {
	if bad := d.shard.read(dst, d.lo+offset); bad >= 0 {
		// Next has no error to return, and OpenSet with verify makes this impossible unless the file changed while
		// mapped.
		panic(fmt.Sprintf(
			"data: shard %s is corrupt: token %d is id %d, outside the vocabulary of %d (open the set with verify)",
			d.shard.path, d.lo+offset+uint64(bad), dst[bad], d.shard.header.vocab))
	}
}
