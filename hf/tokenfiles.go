package hf

import (
	"fmt"

	"antiphase/tokenizer"
)

// TokenizerFiles are transformers' tokenizer files and the special ids they name. first is the id that begins every
// prompt, −1 for none; chat is a chat template, nil for none.
func TokenizerFiles(tok *tokenizer.Tokenizer, context int, first int32, chat []byte) (map[string][]byte,
	Tokens, error) {
	ids := Tokens{BOS: -1, Pad: -1}
	if first >= 0 {
		ids.BOS = int(first)
		var err error
		if tok, err = tok.Beginning(first); err != nil {
			return nil, ids, err
		}
	}
	names := map[string]any{}
	if ids.BOS >= 0 {
		names["bos_token"] = tok.Token(first)
	}
	if id, ok := tok.EOS(); ok {
		ids.EOS = []int{int(id)}
		names["eos_token"] = tok.Token(id)
	}
	if id, ok := tok.Pad(); ok {
		ids.Pad = int(id)
		names["pad_token"] = tok.Token(id)
	}
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false,
		"model_max_length": context}
	for key, v := range names {
		config[key] = v
	}
	main, err := tok.MarshalJSON()
	if err != nil {
		return nil, ids, fmt.Errorf("tokenizer.json: %w", err)
	}
	files := map[string][]byte{"tokenizer.json": main}
	for name, v := range map[string]any{"tokenizer_config.json": config, "special_tokens_map.json": names} {
		if files[name], err = jsonText(v); err != nil {
			return nil, ids, fmt.Errorf("%s: %w", name, err)
		}
	}
	if chat != nil {
		files["chat_template.jinja"] = chat
	}
	return files, ids, nil
}
