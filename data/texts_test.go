package data

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/vfs"
)

// Documents of other options than the defaults are fixed too. Where this fails on purpose, raise syntheticVersion.
func TestSyntheticIsFixedForEveryOption(t *testing.T) {
	for spec, want := range map[string]string{
		"seed=3,len=3000,mix=prose":                                     "ac1ba77ed100",
		"seed=4,len=300,mix=facts":                                      "41716af1c140",
		"len=5000,mix=facts":                                            "95d0901f341a",
		"len=128,mix=needle":                                            "d43b3279b72e",
		"len=2500,mix=needle,needles=9,queries=4,asks=6,digits=5":       "92afc592147e",
		"len=900,mix=needle,needles=90,queries=90,asks=90,digits=9":     "1fed11d62da1",
		"len=128,mix=kv":                                                "3aae47cb96d2",
		"len=6000,mix=kv,digits=2":                                      "29650cad0933",
		"len=700,mix=kv,digits=9":                                       "259e893d91d9",
		"len=128,mix=shots":                                             "de9a5119c2b4",
		"len=3000,mix=shots":                                            "98281f63dc6a",
		"len=128,mix=arith":                                             "58f236ce200c",
		"len=2000,mix=arith+kv:5":                                       "4f953cd6fe0b",
		"seed=18446744073709551615,mix=prose:2+facts:1+shots:7+arith:1": "6ec0078ac79e",
	} {
		s := must(parseSynthetic(spec))
		h := sha256.New()
		for i := range 40 {
			d := s.Document(i)
			fmt.Fprintf(h, "%s\n%s\n", d.Source, d.Text)
		}
		if got := fmt.Sprintf("%x", h.Sum(nil)[:6]); got != want {
			t.Errorf("%s: 40 documents hash to %s, want %s", spec, got, want)
		}
	}
}

// wrongManifests are changes of a manifest by what is said of them.
var wrongManifests = map[string]func(m *Manifest){
	"vocabulary of 0, want 1 to 2147483647":  func(m *Manifest) { m.Vocab = 0 },
	"vocabulary of -1, want 1 to 2147483647": func(m *Manifest) { m.Vocab = -1 },
	"end-of-text id 257 is outside the vocabulary of 257": func(m *Manifest) {
		m.EOS = ptr(int32(257))
	},
	"end-of-text id -1 is outside the vocabulary of 257": func(m *Manifest) { m.EOS = ptr(int32(-1)) },
	`shard "train-00001.bin" belongs to source 2 of 1`:   func(m *Manifest) { m.Shards[1].Part = 2 },
	`shard "train-00001.bin" belongs to source -1 of 1`:  func(m *Manifest) { m.Shards[1].Part = -1 },
	`shard "train-00000.bin" is listed twice`:            func(m *Manifest) { m.Shards[1].Name = m.Shards[0].Name },
	`shard name "" is not a plain file name`:             func(m *Manifest) { m.Shards[1].Name = "" },
	`shard name "../x" is not a plain file name`:         func(m *Manifest) { m.Shards[1].Name = "../x" },
	`shard name ".." is not a plain file name`:           func(m *Manifest) { m.Shards[1].Name = ".." },
	`shard name "a\\b" is not a plain file name`:         func(m *Manifest) { m.Shards[1].Name = `a\b` },
	`shard name "c:x" is not a plain file name`:          func(m *Manifest) { m.Shards[1].Name = `c:x` },
	`shard "train-00001.bin": split "test", want "train" or "valid"`: func(m *Manifest) {
		m.Shards[1].Split = "test"
	},
	`shard "train-00001.bin": 63 bytes, 7 documents, 9 tokens is impossible`: func(m *Manifest) {
		numbers3(m, 63, 7, 9)
	},
	`shard "train-00001.bin": 64 bytes, 0 documents, 9 tokens is impossible`: func(m *Manifest) {
		numbers3(m, 64, 0, 9)
	},
	`shard "train-00001.bin": 64 bytes, 10 documents, 9 tokens is impossible`: func(m *Manifest) {
		numbers3(m, 64, 10, 9)
	},
	`shard "train-00001.bin": sha256 "abc" is not 64 hex digits`: func(m *Manifest) { m.Shards[1].SHA256 = "abc" },
	`shard "train-00001.bin": totals overflow`: func(m *Manifest) {
		numbers3(m, 64, 1, math.MaxInt64)
	},
}

// manifestOfShards is the manifest of a set of several shards.
func manifestOfShards(t *testing.T) *Manifest {
	t.Helper()
	return buildSet(t, randomTexts(40, 60, 1), narrow, BuildOptions{ShardTokens: 500, HeldOut: 0.2}).Manifest
}

// What is said of a manifest that cannot be right: the shard and its numbers.
func TestManifestTexts(t *testing.T) {
	good := manifestOfShards(t)
	for want, change := range wrongManifests {
		var m Manifest
		must(0, json.Unmarshal(must(json.Marshal(good)), &m))
		change(&m)
		if err := m.check("dir/manifest.json"); err == nil || err.Error() != "data: dir/manifest.json: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := *good
	m.Docs++
	m.Tokens += 2
	if err := m.check("x"); err == nil ||
		err.Error() != fmt.Sprintf("data: x: totals of %d documents and %d tokens, its shards add up to %d and %d",
			m.Docs, m.Tokens, m.Docs-1, m.Tokens-2) {
		t.Error(err)
	}
	m = *good
	m.Hash = "00"
	if err := m.check("x"); err == nil ||
		err.Error() != fmt.Sprintf("data: x: hash %q, its content hashes to %q (edited by hand?)", "00",
			good.Hash) {
		t.Error(err)
	}
}

// manifestBounds are changes of a manifest on both sides of every bound.
var manifestBounds = map[string]struct {
	change func(m *Manifest)
	good   bool
}{
	"one id":              {func(m *Manifest) { m.Vocab, m.EOS = 1, nil }, true},
	"the last vocabulary": {func(m *Manifest) { m.Vocab = math.MaxInt32 }, true},
	"one more":            {func(m *Manifest) { m.Vocab = math.MaxInt32 + 1 }, false},
	"id 0 ends texts":     {func(m *Manifest) { m.EOS = ptr(int32(0)) }, true},
	"the last id does":    {func(m *Manifest) { m.EOS = ptr(int32(256)) }, true},
	"documents of one":    {func(m *Manifest) { numbers3(m, 64, 9, 9) }, true},
	"all tokens there are": {func(m *Manifest) {
		numbers3(m, 64, 1, 0)
		sum := int64(0)
		for _, s := range m.Shards {
			sum += s.Tokens
		}
		numbers3(m, 64, 1, math.MaxInt64-sum)
	}, true},
	"capital digits": {func(m *Manifest) { m.Shards[1].SHA256 = strings.ToUpper(m.Shards[1].SHA256) }, true},
	"65 digits":      {func(m *Manifest) { m.Shards[1].SHA256 += "0" }, false},
	"62 digits":      {func(m *Manifest) { m.Shards[1].SHA256 = m.Shards[1].SHA256[2:] }, false},
	"no digit":       {func(m *Manifest) { m.Shards[1].SHA256 = m.Shards[1].SHA256[:63] + "g" }, false},
	"documents":      {func(m *Manifest) { m.Docs++ }, false},
	"tokens":         {func(m *Manifest) { m.Tokens-- }, false},
}

func TestManifestBounds(t *testing.T) {
	good := manifestOfShards(t)
	for name, c := range manifestBounds {
		var m Manifest
		must(0, json.Unmarshal(must(json.Marshal(good)), &m))
		docs, tokens := m.Docs, m.Tokens
		c.change(&m)
		if docs == m.Docs && tokens == m.Tokens {
			m.Docs, m.Tokens = 0, 0
			for _, s := range m.Shards {
				m.Docs, m.Tokens = m.Docs+s.Docs, m.Tokens+s.Tokens
			}
		}
		m.Hash = m.contentHash()
		if strings.HasPrefix(name, "capital") && m.Hash != good.Hash {
			t.Errorf("%s change what the set is called", name)
		}
		if err := m.check("x"); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func numbers3(m *Manifest, bytes, docs, tokens int64) {
	m.Shards[1].Bytes, m.Shards[1].Docs, m.Shards[1].Tokens = bytes, docs, tokens
}

// What is said of a shard that does not fit itself: which number is which.
func TestShardTexts(t *testing.T) {
	for _, c := range []struct {
		vocab  int
		change func(b []byte)
		want   string
	}{
		{300, func(b []byte) { le.PutUint32(b[48:], 7); reseal(b) },
			fmt.Sprintf("tokens have checksum %08x, want 00000007", crc(shardBytes(t, 300)[64:74]))},
		{300, func(b []byte) { le.PutUint32(b[52:], 7); reseal(b) },
			fmt.Sprintf("document index at offset 80 has checksum %08x, want 00000007", crc(shardBytes(t, 300)[80:]))},
		{300, func(b []byte) { le.PutUint32(b[60:], 7) },
			fmt.Sprintf("header checksum %08x, want 00000007", crc(shardBytes(t, 300)[:60]))},
		{300, func(b []byte) { le.PutUint16(b[70:], 301); seal(b, 74) },
			"token 3 is id 301, outside the vocabulary of 300"},
		{70000, func(b []byte) { le.PutUint32(b[76:], 70000); seal(b, 84) },
			"token 3 is id 70000, outside the vocabulary of 70000"},
		{70000, func(b []byte) { le.PutUint32(b[80:], 1<<31); le.PutUint32(b[76:], 80000); seal(b, 84) },
			"token 3 is id 80000, outside the vocabulary of 70000"},
		{300, func(b []byte) { le.PutUint64(b[24:], 3); reseal(b) }, "104 bytes with the index at 80, want 112 bytes " +
			"with the index at 80 for 3 documents and 5 tokens (truncated or grown?)"},
		{300, func(b []byte) { le.PutUint64(b[24:], 13); reseal(b) },
			"header counts 13 documents and 5 tokens, more than its 104 bytes can hold"},
		{300, func(b []byte) { le.PutUint64(b[32:], 53); reseal(b) },
			"header counts 2 documents and 53 tokens, more than its 104 bytes can hold"},
		{300, func(b []byte) { le.PutUint32(b[16:], 0); reseal(b) }, "vocabulary of 0, want 1 to 2147483647"},
		{300, func(b []byte) { le.PutUint32(b[16:], 1<<31); reseal(b) },
			"vocabulary of 2147483648, want 1 to 2147483647"},
		{300, func(b []byte) { le.PutUint32(b[16:], 70000); reseal(b) },
			"2 bytes per token, want 4 for a vocabulary of 70000"},
	} {
		b := shardBytes(t, c.vocab)
		c.change(b)
		s, err := parseShard("s", b)
		if err == nil {
			err = s.verify()
		}
		if err == nil || err.Error() != "data: s: "+c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// What is said of a document or a split that a set does not have.
func TestSplitTexts(t *testing.T) {
	set := buildSet(t, randomTexts(9, 60, 1), narrow, BuildOptions{})
	sp := split(t, set, Train)
	for _, i := range []int64{-1, sp.Docs()} {
		func() {
			defer func() {
				if got, want := fmt.Sprint(recover()),
					fmt.Sprintf("data: document %d of split \"train\", which has 9", i); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}()
			sp.Document(nil, i)
		}()
	}
	if _, err := set.Split("test"); err == nil ||
		err.Error() != fmt.Sprintf("data: source %s: has no split \"test\", only \"train\": there are train and valid",
			set.dir) {
		t.Error(err)
	}
	if _, err := set.Split(Valid); err == nil || !strings.HasSuffix(err.Error(),
		"has no split \"valid\", only \"train\": give more text, or hold more of it out (data.held_out; data "+
			"build --held-out)") {
		t.Error(err)
	}
}

// What is said of a shard that is not what the manifest lists.
func TestListedShardTexts(t *testing.T) {
	set := buildSet(t, randomTexts(9, 60, 1), narrow, BuildOptions{})
	dir, shard := set.dir, set.Manifest.Shards[0]
	for want, change := range map[string]func(i *ShardInfo, m *Manifest){
		fmt.Sprintf("%d bytes, the manifest says %d: restore it or build the set again", shard.Bytes,
			shard.Bytes+8): func(i *ShardInfo, _ *Manifest) { i.Bytes += 8 },
		fmt.Sprintf("holds 9 documents, %d tokens, vocabulary 257; the manifest says 8, %d, 257", shard.Tokens,
			shard.Tokens): func(i *ShardInfo, _ *Manifest) { i.Docs-- },
		fmt.Sprintf("holds 9 documents, %d tokens, vocabulary 257; the manifest says 9, %d, 257", shard.Tokens,
			shard.Tokens+1): func(i *ShardInfo, _ *Manifest) { i.Tokens++ },
		fmt.Sprintf("holds 9 documents, %d tokens, vocabulary 257; the manifest says 9, %d, 258", shard.Tokens,
			shard.Tokens): func(_ *ShardInfo, m *Manifest) { m.Vocab++ },
		fmt.Sprintf("sha256 %s, the manifest says 00: restore it or build the set again",
			shard.SHA256): func(i *ShardInfo, _ *Manifest) { i.SHA256 = "00" },
		fmt.Sprintf("shard is missing; the manifest lists it with %d bytes: restore it or build the set again",
			shard.Bytes): func(i *ShardInfo, _ *Manifest) { i.Name = "gone.bin" },
	} {
		info, m := shard, *set.Manifest
		change(&info, &m)
		file := filepath.Join(dir, info.Name)
		if _, err := openListed(vfs.OS{}, dir, &m, &info, true); err == nil || err.Error() != "data: "+file+": "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// seal makes the checksums of tokens, which end there, and of the header right again.
func seal(b []byte, end int) {
	le.PutUint32(b[48:], crc32.Checksum(b[64:end], castagnoli))
	reseal(b)
}
