package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func build(dir string, src Source, enc Encoder, opt BuildOptions) (*Manifest, error) {
	return Build(context.Background(), dir, []Source{src}, enc, opt)
}

// textsOf decodes every document of a split built with a byteEncoder.
func textsOf(t *testing.T, s *Set, name string, enc byteEncoder) (out []string) {
	t.Helper()
	sp := split(t, s, name)
	for i := range sp.Docs() {
		ids := sp.Document(nil, i)
		if enc.eos >= 0 {
			if ids[len(ids)-1] != enc.eos {
				t.Fatalf("document %d ends with %d, want the end-of-text id", i, ids[len(ids)-1])
			}
			ids = ids[:len(ids)-1]
		}
		var b []byte
		for _, id := range ids {
			b = append(b, byte(id-enc.shift))
		}
		out = append(out, string(b))
	}
	return out
}

func TestBuildKeepsEveryDocumentInOrder(t *testing.T) {
	src := randomTexts(700, 60, 1)
	want := src.docs
	src.docs = append([]string{""}, src.docs...) // an empty document leaves no trace
	for _, enc := range []byteEncoder{narrow, wide, noEOS} {
		s := buildSet(t, src, enc, BuildOptions{ShardTokens: 1000, Workers: 3})
		if got := textsOf(t, s, Train, enc); !slices.Equal(got, want) {
			t.Errorf("%s: %d documents differ from the %d of the source", enc.Hash(), len(got), len(want))
		}
		m := s.Manifest
		if m.Docs != 700 || m.Sources[0].Docs != 700 || m.Tokens != m.Sources[0].Tokens || m.Tokenizer != enc.Hash() {
			t.Errorf("manifest says %+v", m)
		}
		for _, sh := range m.Shards {
			if sh.Tokens > 1000 {
				t.Errorf("shard %s holds %d tokens, want at most 1000", sh.Name, sh.Tokens)
			}
		}
	}
}

func TestBuildDoesNotDependOnWorkers(t *testing.T) {
	src := randomTexts(2000, 60, 1)
	one := buildSet(t, src, narrow, BuildOptions{ShardTokens: 9000, HeldOut: 0.1, Workers: 1}).Manifest
	many := buildSet(t, src, narrow, BuildOptions{ShardTokens: 9000, HeldOut: 0.1, Workers: 7}).Manifest
	if one.Hash != many.Hash || len(one.Shards) < 4 {
		t.Errorf("hash %s of 1 worker, %s of 7 (%d shards)", one.Hash, many.Hash, len(one.Shards))
	}
}

func TestHeldOutIsStable(t *testing.T) {
	src := randomTexts(2000, 60, 2)
	s := buildSet(t, src, narrow, BuildOptions{HeldOut: 0.1, HeldOutBy: ByDocuments})
	valid := textsOf(t, s, Valid, narrow)
	if n := len(valid); n < 150 || n > 250 {
		t.Errorf("%d of 2000 documents are held out, want about 200", n)
	}
	if all := append(textsOf(t, s, Train, narrow), valid...); len(all) != 2000 {
		t.Errorf("%d documents in both splits, want 2000", len(all))
	}
	// The same texts in another order, among others and twice: each still falls where it fell.
	more := randomTexts(100, 50, 3)
	for i := range src.docs {
		more.docs = append(more.docs, src.docs[len(src.docs)-1-i], src.docs[i])
	}
	s = buildSet(t, more, narrow, BuildOptions{HeldOut: 0.1, HeldOutBy: ByDocuments})
	train := textsOf(t, s, Train, narrow)
	for _, d := range valid {
		if slices.Contains(train, d) {
			t.Fatalf("document %q moved from valid to train", d)
		}
	}
}

// Small sets still get both splits, and copies of one text never fall into both.
func TestHeldOutOfFewDocuments(t *testing.T) {
	for n := 2; n < 8; n++ {
		src := randomTexts(n, 20, uint64(n))
		src.docs = append(src.docs, src.docs...)
		s := buildSet(t, src, narrow, BuildOptions{HeldOut: 1e-9, HeldOutBy: ByDocuments})
		train, valid := textsOf(t, s, Train, narrow), textsOf(t, s, Valid, narrow)
		if len(valid) != 2 || valid[0] != valid[1] || slices.Contains(train, valid[0]) || len(train) != 2*n-2 {
			t.Errorf("train %q, valid %q", train, valid)
		}
	}
	s := buildSet(t, texts{docs: []string{"only"}}, narrow, BuildOptions{HeldOut: 0.5, HeldOutBy: ByDocuments})
	if got := textsOf(t, s, Train, narrow); !slices.Equal(got, []string{"only"}) {
		t.Errorf("train %q, want the one document", got)
	}
}

func TestMaxTokens(t *testing.T) {
	src := randomTexts(5000, 60, 4)
	var docs, tokens int64
	s := buildSet(t, src, narrow, BuildOptions{MaxTokens: 3000, Progress: func(d, n int64) { docs, tokens = d, n }})
	m := s.Manifest
	if m.Tokens < 3000 || m.Tokens > 3000+70 || docs != m.Docs || tokens != m.Tokens {
		t.Errorf("%d tokens of %d documents, progress says %d of %d; want just over 3000", m.Tokens,
			m.Docs, tokens, docs)
	}
	if got := textsOf(t, s, Train, narrow); !slices.Equal(got, src.docs[:len(got)]) {
		t.Error("the documents kept are not the first ones")
	}
}

func TestBuildReuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "set")
	src := randomTexts(20, 30, 5)
	first, err := build(dir, src, narrow, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shard := filepath.Join(dir, "train-00000.bin")
	stamp := must(os.Stat(shard)).ModTime()
	poisoned := src
	poisoned.err = errors.New("must not be read")
	again, err := build(dir, poisoned, narrow, BuildOptions{})
	if err != nil || again.Hash != first.Hash || !must(os.Stat(shard)).ModTime().Equal(stamp) {
		t.Fatalf("the set was built again (%v)", err)
	}
	// A damaged set is made whole, one of other inputs is replaced.
	remove(t, shard)
	if again, err = build(dir, src, narrow, BuildOptions{}); err != nil || again.Hash != first.Hash {
		t.Fatalf("rebuilding a damaged set: %v", err)
	}
	changed := randomTexts(20, 30, 6)
	if again, err = build(dir, changed, narrow, BuildOptions{}); err != nil || again.Hash == first.Hash {
		t.Fatalf("replacing by other sources: %v", err)
	}
	if again, err = build(dir, changed, wide, BuildOptions{}); err != nil || again.Tokenizer != wide.Hash() {
		t.Fatalf("replacing by another tokenizer: %v", err)
	}
	// Each is another set of the same text.
	for _, opt := range []BuildOptions{{MaxTokens: 40}, {HeldOut: 0.5}, {ShardTokens: 30}, {}} {
		last := again.Inputs
		if again, err = build(dir, changed, wide, opt); err != nil || again.Inputs == last {
			t.Fatalf("replacing by %+v: %v, inputs %s", opt, err, again.Inputs)
		}
	}
	changed.id = "" // a source that cannot vouch for itself is read every time
	for range 2 {
		changed.docs = append(changed.docs, "more")
		if again, err = build(dir, changed, wide, BuildOptions{}); err != nil ||
			again.Docs != int64(len(changed.docs)) {
			t.Fatalf("source without fingerprint: %v", err)
		}
	}
	onlyEntry(t, filepath.Dir(dir), "set")
}

// onlyEntry checks that dir holds just that: no temporary folder remains.
func onlyEntry(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range must(os.ReadDir(dir)) {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("folder holds %q, want %q", got, want)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	boom := errors.New("disk on fire")
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	many := randomTexts(3000, 60, 1)
	failing := texts{docs: many.docs, err: boom}
	for name, tc := range map[string]struct {
		ctx  context.Context
		src  []Source
		enc  Encoder
		opt  BuildOptions
		want string
	}{
		"source fails": {context.Background(), []Source{failing}, narrow, BuildOptions{}, "texts: disk on fire"},
		"bad id": {context.Background(), []Source{many}, byteEncoder{vocab: 100, eos: -1}, BuildOptions{},
			"its vocabulary is 100"},
		"bad eos": {context.Background(), []Source{many}, byteEncoder{vocab: 256, eos: 256}, BuildOptions{},
			"end-of-text id 256"},
		"cancelled": {cancelled, []Source{many}, narrow, BuildOptions{}, "context canceled"},
		"empty": {context.Background(), []Source{texts{docs: []string{"", ""}}}, narrow, BuildOptions{},
			"no document"},
		"no source": {context.Background(), nil, narrow, BuildOptions{}, "no sources"},
		"held out by": {context.Background(), []Source{many}, narrow, BuildOptions{HeldOutBy: "rows"},
			`HeldOutBy "rows"`},
		"held out": {context.Background(), []Source{many}, narrow, BuildOptions{HeldOut: 1}, "HeldOut 1"},
		"negative": {context.Background(), []Source{many}, narrow, BuildOptions{ShardTokens: -1}, "negative"},
	} {
		parent := t.TempDir()
		_, err := Build(tc.ctx, filepath.Join(parent, "set"), tc.src, tc.enc, tc.opt)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
		onlyEntry(t, parent)
	}
}

func TestFailedBuildKeepsTheOldSet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	first := must(build(dir, randomTexts(20, 30, 1), narrow, BuildOptions{}))
	if _, err := build(dir, texts{docs: []string{"x"}, err: errors.New("boom")}, narrow, BuildOptions{}); err == nil {
		t.Fatal("no error")
	}
	s, err := OpenSet(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Manifest.Hash != first.Hash {
		t.Error("the old set changed")
	}
}

func TestBuildLeavesForeignFoldersAlone(t *testing.T) {
	src := randomTexts(5, 30, 1)
	for name, prepare := range map[string]func(dir string){
		"no set":     func(dir string) { write(t, filepath.Join(dir, "thesis.txt"), []byte("dear")) },
		"broken set": func(dir string) { write(t, filepath.Join(dir, manifestName), []byte("{}")) },
		"set and more": func(dir string) {
			must(build(dir, src, narrow, BuildOptions{}))
			write(t, filepath.Join(dir, "thesis.txt"), []byte("dear"))
		},
	} {
		dir := t.TempDir()
		prepare(dir)
		before := fmt.Sprint(must(os.ReadDir(dir)))
		if _, err := build(dir, src, wide, BuildOptions{}); err == nil || !strings.Contains(err.Error(), "left alone") {
			t.Errorf("%s: error %v, want a refusal", name, err)
		}
		if after := fmt.Sprint(must(os.ReadDir(dir))); after != before {
			t.Errorf("%s: folder changed from %s to %s", name, before, after)
		}
	}
}
