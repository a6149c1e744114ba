package tokenizer

import (
	"encoding/json"
	"fmt"
)

// Beginning returns a tokenizer that puts id before every text, as its file's post-processor; t itself when it does so already.
func (t *Tokenizer) Beginning(id int32) (*Tokenizer, error) {
	tok := t.Token(id)
	if tok == "" {
		return nil, fmt.Errorf("tokenizer: there is no token %d to begin with", id)
	}
	if len(t.template.prefix) > 0 && t.template.prefix[0] == id {
		return t, nil
	}
	type object = map[string]any
	special := object{"SpecialToken": object{"id": tok, "type_id": 0}}
	text := func(name string, kind int) object { return object{"Sequence": object{"id": name, "type_id": kind}} }
	template := object{
		"type": "TemplateProcessing", "single": []object{special, text("A", 0)},
		"pair":           []object{special, text("A", 0), special, text("B", 1)},
		"special_tokens": object{tok: object{"id": tok, "ids": []int32{id}, "tokens": []string{tok}}},
	}
	processor := any(template)
	if !isNull(t.spec.processor) {
		processor = object{"type": "Sequence", "processors": []any{t.spec.processor, template}}
	}
	b, err := json.Marshal(processor)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	sp := t.spec
	sp.processor = b
	return build(sp)
}
