package chat

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// Every special token that templates may use is found, written as a text or as an object, and no other is.
func TestLoadTokens(t *testing.T) {
	names := []string{"bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token"}
	var source, config strings.Builder
	want := ""
	for i, name := range names {
		fmt.Fprintf(&source, "{{ %s }}|", name)
		if i%2 == 0 {
			fmt.Fprintf(&config, `,"%s":"<%d>"`, name, i)
		} else {
			fmt.Fprintf(&config, `,"%s":{"content":"<%d>","lstrip":true}`, name, i)
		}
		want += fmt.Sprintf("<%d>|", i)
	}
	files := map[string]string{"tokenizer_config.json": `{"model_max_length":5` + config.String() +
		`,"other_token":"x"}`, "chat_template.jinja": source.String() + "{{ other_token }}"}
	read := func(limits map[string]int64) func(string, int64) ([]byte, error) {
		return func(name string, limit int64) ([]byte, error) {
			if limits != nil {
				limits[name] = limit
			}
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
	}
	limits := map[string]int64{}
	tpl, err := Load(read(limits))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tpl.Render(hello); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if limits["tokenizer_config.json"] != 32<<20 || limits["chat_template.jinja"] != 1<<18 ||
		tpl.Source() != files["chat_template.jinja"] {
		t.Errorf("limits %v, source %q", limits, tpl.Source())
	}
	files = map[string]string{"chat_template.jinja": ""}
	if _, err := Load(read(nil)); err == nil || err.Error() != "chat_template.jinja is empty" {
		t.Error(err)
	}
	files = map[string]string{
		"tokenizer_config.json": `{"bos_token":null,"eos_token":7,"pad_token":"","chat_template":"[{{ bos_token }}{{ eos_token }}{{ pad_token }}]"}`}
	if tpl, err = Load(read(nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := tpl.Render(hello); err != nil || got != "[]" {
		t.Errorf("%q, %v", got, err)
	}
}

// A file that is there and cannot be read is named.
func TestLoadFails(t *testing.T) {
	lost := errors.New("lost")
	for _, bad := range []string{"tokenizer_config.json", "chat_template.jinja"} {
		_, err := Load(func(name string, _ int64) ([]byte, error) {
			if name == bad {
				return nil, lost
			}
			return nil, fs.ErrNotExist
		})
		if !errors.Is(err, lost) || !strings.HasPrefix(err.Error(), bad+": ") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
