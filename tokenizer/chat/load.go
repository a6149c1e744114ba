package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

const (
	configFile = "tokenizer_config.json"
	maxConfig  = 32 << 20 // bytes of it: it may list many added tokens
)

// Load reads a model folder's template: chat_template.jinja, or chat_template in tokenizer_config.json, where older
// releases of transformers keep it. It is nil if the folder has none. read returns a file of the folder of at most
// limit bytes.
func Load(read func(name string, limit int64) ([]byte, error)) (*Template, error) {
	config, tokens, err := readConfig(read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	from := "chat_template.jinja"
	source, err := read(from, maxTemplate)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		from = configFile
		source, err = templateOf(config)
	case err == nil && len(source) == 0:
		return nil, fmt.Errorf("%s is empty", from)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if len(source) == 0 {
		return nil, nil
	}
	t, err := Parse(string(source), tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return t, nil
}

// readConfig returns the file's template, and the special tokens under the names that templates use.
func readConfig(read func(string, int64) ([]byte, error)) (template json.RawMessage,
	tokens map[string]string, err error) {
	tokens = map[string]string{}
	b, err := read(configFile, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, tokens, nil
	}
	var m map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token",
		"mask_token"} {
		var text string
		var object struct{ Content string }
		if json.Unmarshal(m[name], &text) == nil && text != "" {
			tokens[name] = text
		} else if json.Unmarshal(m[name], &object) == nil && object.Content != "" {
			tokens[name] = object.Content
		}
	}
	return m["chat_template"], tokens, nil
}

// templateOf reads chat_template: a text, or a list of named ones, of which "default" is used.
func templateOf(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text), nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("chat_template: must be a string or a list of named templates")
	}
	for _, t := range list {
		if t.Name == "default" {
			return []byte(t.Template), nil
		}
	}
	return nil, errors.New(`chat_template: none of the templates is named "default"`)
}
