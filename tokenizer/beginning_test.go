package tokenizer

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestBeginning puts one token before every text, whatever the file's own post-processor does.
func TestBeginning(t *testing.T) {
	for _, dir := range []string{"gpt2-style", "llama2-style"} {
		old := loadDir(t, "testdata/"+dir)
		id, ok := old.EOS()
		if !ok {
			t.Fatalf("%s has no end-of-text token", dir)
		}
		tok, err := old.Beginning(id)
		if err != nil {
			t.Fatal(err)
		}
		const text = "Hello world"
		if got, want := tok.Encode(text),
			append([]int32{id}, old.Encode(text, NoTemplate)...); !slices.Equal(got, want) {
			t.Errorf("%s: ids %v, want %v", dir, got, want)
		}
		if got, want := tok.Encode(text, NoTemplate), old.Encode(text, NoTemplate); !slices.Equal(got, want) {
			t.Errorf("%s without template: ids %v, want %v", dir, got, want)
		}
		if again, err := tok.Beginning(id); err != nil || again != tok {
			t.Errorf("%s: a second time: %v, %v", dir, again, err)
		}
	}
	if _, err := Bytes().Beginning(9999); err == nil {
		t.Error("a token that is not there was put before texts")
	}
}

// Whatever a template put around texts is gone: a suffix, another or a longer prefix, or both; only the very same
// beginning alone is kept as it is.
func TestBeginningReplaces(t *testing.T) {
	for name, x := range map[string]struct {
		single string
		keeps  bool
	}{
		"the same": {`S,A`, true}, "with a suffix": {`S,A,E`, false}, "a suffix alone": {`A,E`, false},
		"another": {`E,A`, false}, "twice": {`S,S,A`, false}, "none": {`A`, false},
	} {
		part := map[string]string{"S": `{"SpecialToken":{"id":"<s>","type_id":0}}`,
			"E": `{"SpecialToken":{"id":"<e>","type_id":0}}`, "A": `{"Sequence":{"id":"A","type_id":0}}`}
		var list []string
		for _, p := range strings.Split(x.single, ",") {
			list = append(list, part[p])
		}
		tok := parsed(t,
			`{"added_tokens":[{"id":1,"content":"<s>","special":true},{"id":2,"content":"<e>","special":true}],
			"post_processor":{"type":"TemplateProcessing","single":[`+strings.Join(list, ",")+`],"pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]},"<e>":{"id":"<e>","ids":[2],"tokens":["<e>"]}}},
			"model":{"type":"BPE","vocab":{"x":0},"merges":[]}}`)
		got, err := tok.Beginning(1)
		if err != nil {
			t.Fatal(err)
		}
		if ids := got.Encode("xx"); !slices.Equal(ids, []int32{1, 0, 0}) || (got == tok) != x.keeps {
			t.Errorf("%s: %v, kept %v", name, ids, got == tok)
		}
	}
}

// The post-processor that is written: one token before a text, and before each of two; after another processor that
// adds nothing.
func TestBeginningIsWritten(t *testing.T) {
	const model = `"model":{"type":"BPE","vocab":{"x":0},"merges":[]}}`
	const template = `{"type":"TemplateProcessing",
		"single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
		"pair":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],
		"special_tokens":{"<s>":{"id":"<s>","ids":[1],"tokens":["<s>"]}}}`
	for before, want := range map[string]string{
		"null": template,
		`{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true}`: `{"type":"Sequence","processors":[{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true},` +
			template + `]}`,
	} {
		tok, err := parsed(t, `{"added_tokens":[{"id":1,"content":"<s>","special":true}],"post_processor":`+before+`,`+
			model).Beginning(1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := tok.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Processor any `json:"post_processor"`
		}
		var wanted any
		if err := errors.Join(json.Unmarshal(b, &file), json.Unmarshal([]byte(want), &wanted)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(file.Processor, wanted) {
			t.Errorf("%s: %v, want %v", before, file.Processor, wanted)
		}
	}
}
