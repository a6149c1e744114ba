package hf

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"antiphase/tokenizer"
)

func ptr[T any](v T) *T { return &v }

// Every field of generation_config.json is written and read again under transformers' name; what is absent stays
// absent.
func TestGenerationFields(t *testing.T) {
	ids := Tokens{BOS: 1, Pad: 2, EOS: []int{3, 4}}
	for want, g := range map[string]*Generation{
		`{}`: {}, `{"do_sample":true}`: {Sample: ptr(true)}, `{"do_sample":false}`: {Sample: ptr(false)},
		`{"temperature":0.5}`: {Temperature: ptr(0.5)}, `{"top_k":7}`: {TopK: ptr(7)},
		`{"top_p":0.25}`: {TopP: ptr(0.25)}, `{"min_p":0.75}`: {MinP: ptr(0.75)},
		`{"repetition_penalty":1.5}`: {RepetitionPenalty: ptr(1.5)}, `{"max_new_tokens":9}`: {MaxNewTokens: ptr(9)},
	} {
		for _, x := range []struct {
			ids  Tokens
			json map[string]any
		}{{Tokens{BOS: -1, Pad: -1}, nil},
			{ids, map[string]any{"bos_token_id": 1., "pad_token_id": 2., "eos_token_id": []any{3., 4.}}},
			{Tokens{BOS: 0, Pad: -1, EOS: []int{5}}, map[string]any{"bos_token_id": 0., "eos_token_id": 5.}},
			{Tokens{BOS: -1, Pad: 0, EOS: []int{0}}, map[string]any{"pad_token_id": 0., "eos_token_id": 0.}}} {
			b, err := g.JSON(x.ids)
			if err != nil {
				t.Fatal(err)
			}
			var got, all map[string]any
			if json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte(want), &all) != nil {
				t.Fatalf("%s", b)
			}
			for k, v := range x.json {
				all[k] = v
			}
			if !reflect.DeepEqual(got, all) {
				t.Errorf("%s, want %v", b, all)
			}
			back, tokens, err := ParseGeneration(b, 10)
			if err != nil || !reflect.DeepEqual(back, g) || !reflect.DeepEqual(tokens, x.ids) {
				t.Errorf("%s: %+v, %+v, %v", b, back, tokens, err)
			}
		}
	}
}

// Both sides of each range, ids outside of the vocabulary, and settings that would change tokens unnoticed.
func TestGenerationBounds(t *testing.T) {
	for text, good := range map[string]bool{
		`{"temperature":0}`: true, `{"temperature":-0.1}`: false, `{"temperature":1e6}`: true,
		`{"temperature":1.1e6}`: false, `{"temperature":"x"}`: false,
		`{"top_p":0}`: true, `{"top_p":1}`: true, `{"top_p":1.01}`: false, `{"top_p":-0.01}`: false,
		`{"min_p":1}`: true, `{"min_p":1.01}`: false,
		`{"repetition_penalty":1e-6}`: true, `{"repetition_penalty":0}`: false, `{"repetition_penalty":1e6}`: true,
		`{"repetition_penalty":2e6}`: false,

		`{"top_k":0}`: true, `{"top_k":-1}`: false, `{"top_k":1.5}`: false, `{"max_new_tokens":-1}`: false,
		`{"do_sample":1}`:      false,
		`{"eos_token_id":"x"}`: false, `{"bos_token_id":[1,2]}`: false,
		`{"num_beams":1}`: true, `{"num_beams":2}`: false, `{"typical_p":1.0}`: true, `{"typical_p":0.5}`: false,
		`{"stop_strings":[]}`: true, `{"stop_strings":["a"]}`: false,
		`{"no_repeat_ngram_size":0}`: true, `{"no_repeat_ngram_size":3}`: false, `{"max_length":20}`: true,
		`{"use_cache":false}`: true, `{"something_else":1}`: false, `[]`: false, `{`: false,
	} {
		_, _, err := ParseGeneration([]byte(text), 10)
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), "generation_config.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]Tokens{ // ids outside of the vocabulary are left out
		`{"eos_token_id":9}`: {-1, -1, []int{9}}, `{"eos_token_id":10}`: {-1, -1, nil},
		`{"eos_token_id":[-1,0,10,9]}`:        {-1, -1, []int{0, 9}},
		`{"bos_token_id":9,"pad_token_id":0}`: {9, 0, nil}, `{"bos_token_id":10,"pad_token_id":-1}`: {-1, -1, nil},
		`{"bos_token_id":[3]}`: {3, -1, nil},
	} {
		if _, ids, err := ParseGeneration([]byte(text), 10); err != nil || !reflect.DeepEqual(ids, want) {
			t.Errorf("%s: %+v, %v", text, ids, err)
		}
	}
	for key, values := range steering {
		for _, v := range values {
			if _, _, err := ParseGeneration([]byte(`{"`+key+`":`+v+`}`), 10); err != nil {
				t.Errorf("%s = %s has no effect, and is refused: %v", key, v, err)
			}
		}
		if _, _, err := ParseGeneration([]byte(`{"`+key+`":12345}`), 10); err == nil {
			t.Errorf("%s passes", key)
		}
	}
	for range 20 {
		if _, _, err := ParseGeneration([]byte(`{"typical_p":0.5,"num_beams":2,"stop_strings":["a"],"min_length":3}`),
			10); err == nil || !strings.Contains(err.Error(), "min_length = 3") {
			t.Fatalf("of several refused keys another one was reported: %v", err)
		}
	}
	if g, ids, err := ParseGeneration(nil, 10); err != nil || !reflect.DeepEqual(g, &Generation{}) ||
		!reflect.DeepEqual(ids, Tokens{BOS: -1, Pad: -1}) {
		t.Errorf("no file: %+v, %+v, %v", g, ids, err)
	}
}

// The tokenizer's files name the same special tokens everywhere, and none that it does not have.
func TestTokenizerFiles(t *testing.T) {
	tok := tokenizer.Bytes()
	eos, _ := tok.EOS()
	for _, first := range []int32{-1, eos} {
		for _, chat := range [][]byte{nil, []byte("{{ x }}")} {
			files, ids, err := TokenizerFiles(tok, 77, first, chat)
			if err != nil {
				t.Fatal(err)
			}
			if ids.BOS != int(first) || len(ids.EOS) != 1 || ids.EOS[0] != int(eos) ||
				string(files["chat_template.jinja"]) != string(chat) {
				t.Errorf("%+v", ids)
			}
			var config, special map[string]any
			if json.Unmarshal(files["tokenizer_config.json"], &config) != nil ||
				json.Unmarshal(files["special_tokens_map.json"], &special) != nil {
				t.Fatal("not JSON")
			}
			if config["model_max_length"] != 77. || config["eos_token"] != tok.Token(eos) ||
				special["eos_token"] != tok.Token(eos) || config["clean_up_tokenization_spaces"] != false {
				t.Errorf("%v, %v", config, special)
			}
			for _, m := range []map[string]any{config, special} {
				if v, ok := m["bos_token"]; ok != (first >= 0) || ok && v != tok.Token(first) {
					t.Errorf("bos_token %v of %d", v, first)
				}
			}
			back, err := tokenizer.Parse(files["tokenizer.json"])
			if err != nil {
				t.Fatal(err)
			}
			want := tok.EncodeOrdinary(nil, "ab")
			if first >= 0 {
				want = append([]int32{first}, want...)
			}
			if got := back.Encode("ab"); !reflect.DeepEqual(got, want) {
				t.Errorf("text begins with %v, want %v", got, want)
			}
		}
	}
}
