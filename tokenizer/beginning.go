package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Beginning returns a tokenizer whose post-processor puts id before every text and nothing else around it; t itself if
// it already does so.
func (t *Tokenizer) Beginning(id int32) (*Tokenizer, error) {
	tok := t.Token(id)
	if tok == "" {
		return nil, fmt.Errorf("tokenizer: there is no token %d to begin with", id)
	}
	own := len(t.template.prefix)+len(t.template.suffix) > 0
	if slices.Equal(t.template.prefix, []int32{id}) && len(t.template.suffix) == 0 {
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
	if !own && !isNull(t.spec.processor) { // one that adds nothing still affects offsets
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
