package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusals are changes to tinyJSON and what the error must name.
var refusals = []struct{ old, new, want string }{
	{`"version":"1.0"`, `"version":"2.0"`, "2.0"},
	{`"version":"1.0"`, `"version":"1.0","extra":1`, "extra"},
	{`"type":"NFC"`, `"type":"Nmt"`, "Nmt"},
	{`"type":"NFC"`, `"type":"NFC","depth":1`, "depth"},
	{`"type":"Split"`, `"type":"BertPreTokenizer"`, "BertPreTokenizer"},
	{`"MergedWithNext"`, `"Merged"`, "Merged"},
	{`"Regex":"a+|\\d"`, `"Regex":"(a"`, "(a"},
	{`"Regex":"a+|\\d"`, `"Regex":"[[:alpha:]]"`, "[[:"},
	{`"Regex":"a+|\\d"`, `"Regexp":"a"`, "Regexp"},
	{`"type":"TemplateProcessing"`, `"type":"BertProcessing"`, "BertProcessing"},
	{`"ids":[7]`, `"ids":[4294967296]`, "4294967296"},
	{`"single":[{"SpecialToken":{"id":"<s>"`, `"single":[{"SpecialToken":{"id":"<t>"`, "<t>"},
	{`{"Sequence":{"id":"A","type_id":0}}],
"pair"`, `{"Sequence":{"id":"B","type_id":0}}],
"pair"`, "want A"},
	{`"type":"ByteFallback"`, `"type":"WordPiece"`, "WordPiece"},
	{`"content":" ","start"`, `"content":"xy","start"`, `content "xy" must be one character`},
	{`"type":"BPE"`, `"type":"Unigram"`, `type "Unigram" is not supported; want BPE`},
	{`"dropout":null`, `"dropout":0.1`, "dropout 0.1 is not supported: encoding would be random"},
	{`"continuing_subword_prefix":null`, `"continuing_subword_prefix":"##"`,
		`continuing_subword_prefix "##" is not supported`},
	{`"end_of_word_suffix":null`, `"end_of_word_suffix":"</w>"`, `end_of_word_suffix "</w>" is not supported`},
	{`"ab":4`, `"ab":2147483648`, "2147483648"},
	{`"ab":4`, `"ab":2147483647`, "2147483647"},
	{`"ab":4`, `"ab":1000000000`, "1000000000"},
	{`"ab":4`, `"ab":-1`, "-1"},
	{`"ab":4`, `"ab":2`, `"ab" and "b" share id 2`},
	{`"ab":4`, `"ab":"4"`, "string"},
	{`"ab":4`, `"xy":4`, `"ab"`},
	{`"a b"`, `"a b a"`, "merges[0]"},
	{`["ab","a"]`, `["ab","a","b"]`, "merges[1]"},
	{`["ab","a"]`, `7`, "merges[1]"},
	{`"id":7`, `"id":2147483648`, "2147483648"},
	{`"id":7,`, ``, "added_tokens[0]"},
	{`"single_word":false`, `"single_word":1`, "added_tokens[0]"},
	{`{"version"`, `["version"`, "tokenizer.json"},
	{`"byte_fallback"`, `"bytes"`, "bytes"},
	{`}}`, ``, "ends too early"},
	{`"model"`, `"model":null,"decoder"`, "no model"},
}

// TestParseRefuses changes one thing of a good file at a time; the error must name it.
func TestParseRefuses(t *testing.T) {
	if _, err := Parse([]byte(tinyJSON)); err != nil {
		t.Fatal(err)
	}
	for _, c := range refusals {
		if !strings.Contains(tinyJSON, c.old) {
			t.Fatalf("the file has no %s", c.old)
		}
		i := strings.LastIndex(tinyJSON, c.old)
		if strings.Count(tinyJSON, c.old) > 1 && c.old != "}}" {
			i = strings.Index(tinyJSON, c.old)
		}
		bad := tinyJSON[:i] + c.new + tinyJSON[i+len(c.old):]
		_, err := Parse([]byte(bad))
		if !errors.As(err, new(*FormatError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s → %s: error %v; want a FormatError that names %q", c.old, c.new, err, c.want)
		}
	}
	if _, err := Parse([]byte("\xff{}")); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("invalid UTF-8: error %v", err)
	}
	deep := strings.Repeat(`{"type":"Sequence","normalizers":[`, 40) + strings.Repeat(`]}`, 40)
	bad := strings.Replace(tinyJSON, `{"type":"NFC"}`, deep, 1)
	if _, err := Parse([]byte(bad)); err == nil || !strings.Contains(err.Error(), "inside each other") {
		t.Errorf("deep nesting: error %v", err)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.json")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("missing file: error %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"model":{"type":"WordLevel"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "WordLevel") {
		t.Errorf("wrong model: error %v", err)
	}
}

// TestLoadIsBounded: a file without end, or one of 10⁹ entries, is not read into memory.
func TestLoadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endless.json")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(20e9), f.Close())
	}
	if err != nil {
		t.Skipf("no room for a sparse file: %v", err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("20 GB: error %v", err)
	}
}

func TestNotesAndHash(t *testing.T) {
	plain, err := Parse([]byte(tinyJSON))
	if err != nil {
		t.Fatal(err)
	}
	if len(plain.Notes()) != 0 {
		t.Errorf("notes on a plain file: %v", plain.Notes())
	}
	other := strings.NewReplacer(`"truncation":null`, `"truncation":{"max_length":512}`, `"padding":null`,
		`"padding":{"pad_id":0}`,
		`"a b"`, `["a","b"]`, `"type":"NFC"`, ` "type" : "NFC" `).Replace(tinyJSON)
	tok, err := Parse([]byte(other))
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(tok.Notes(), "; "); !strings.Contains(notes, "truncation") ||
		!strings.Contains(notes, "padding") {
		t.Errorf("notes are %q", notes)
	}
	if tok.Hash() != plain.Hash() {
		t.Error("layout, truncation and padding change the hash")
	}
	changed, err := Parse([]byte(strings.Replace(tinyJSON, `"fuse_unk":true`, `"fuse_unk":false`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if changed.Hash() == plain.Hash() {
		t.Error("another model has the same hash")
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	tok := loadDir(t, "testdata/llama2-style")
	path := filepath.Join(dir, "tokenizer.json")
	for range 2 { // the second time over the first
		if err := tok.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash() != tok.Hash() {
		t.Error("the saved file is another tokenizer")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v; want the file alone", entries, err)
	}
	if err := tok.Save(filepath.Join(dir, "none", "tokenizer.json")); err == nil {
		t.Error("saving into a missing folder succeeded")
	}
}
