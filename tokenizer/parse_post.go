package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

func parseDecoder(raw json.RawMessage, b *budget) ([]decodeStep, error) {
	return parseEach(raw, "decoders", b, parseOneDecoder)
}

func parseOneDecoder(kind string, raw json.RawMessage, b *budget) (decodeStep, error) {
	var c struct {
		byteLevelFields
		Pattern json.RawMessage `json:"pattern"`
		Content string          `json:"content"`
		Start   int             `json:"start"`
		Stop    int             `json:"stop"`
		Rep     *string         `json:"replacement"`
		Scheme  *string         `json:"prepend_scheme"`
		Split   *bool           `json:"split"`
		StrRep  *string         `json:"str_rep"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, err
	}
	switch kind {
	case "ByteLevel":
		return byteLevelDecoder{}, nil
	case "ByteFallback":
		return byteFallbackDecoder{}, nil
	case "Fuse":
		return fuseDecoder{}, nil
	case "Strip":
		if c.Start < 0 || c.Stop < 0 {
			return nil, fmt.Errorf("start %d and stop %d must not be negative", c.Start, c.Stop)
		}
		return stripDecoder{c.Content, c.Start, c.Stop}, oneChar("content", c.Content)
	case "Replace":
		var pj patternJSON
		if err := strict(c.Pattern, &pj); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		p, err := pj.compile(b)
		return replaceDecoder{p, c.Content}, err
	case "Metaspace":
		rep, scheme, err := metaspaceFields(c.Rep, c.Scheme, c.Prefix)
		return metaspaceDecoder{rep, scheme != "never"}, err
	}
	return nil, errors.New("this decoder is not supported")
}

// templatePart is {"SpecialToken": {...}} or {"Sequence": {...}}.
type templatePart struct {
	SpecialToken *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
	Sequence *struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
}

type templateJSON struct {
	Type          string          `json:"type"`
	Single        []templatePart  `json:"single"`
	Pair          json.RawMessage `json:"pair"` // for two texts, which Encode does not take
	SpecialTokens map[string]struct {
		ID     string   `json:"id"`
		IDs    []int64  `json:"ids"`
		Tokens []string `json:"tokens"`
	} `json:"special_tokens"`
}

func (t parser) parseProcessor(raw json.RawMessage) error {
	return walk(raw, "processors", 0, func(kind string, raw json.RawMessage) error {
		switch kind {
		case "ByteLevel":
			return nil // it changes offsets only
		case "TemplateProcessing":
			return t.parseTemplate(raw)
		}
		return errors.New("this post-processor is not supported")
	})
}

func (t parser) parseTemplate(raw json.RawMessage) error {
	var c templateJSON
	if err := strict(raw, &c); err != nil {
		return err
	}
	var prefix, suffix []int32
	texts := 0
	for i, part := range c.Single {
		switch {
		case part.Sequence != nil && part.SpecialToken == nil:
			if part.Sequence.ID != "A" {
				return fmt.Errorf("single[%d]: sequence %q; want A", i, part.Sequence.ID)
			}
			texts++
		case part.SpecialToken != nil && part.Sequence == nil:
			tok, ok := c.SpecialTokens[part.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("single[%d]: %q is not among special_tokens", i, part.SpecialToken.ID)
			}
			for _, id := range tok.IDs {
				if id < 0 || id > math.MaxInt32 {
					return fmt.Errorf("special_tokens: id %d of %q is out of range", id, part.SpecialToken.ID)
				}
				if texts == 0 {
					prefix = append(prefix, int32(id))
				} else {
					suffix = append(suffix, int32(id))
				}
			}
		default:
			return fmt.Errorf("single[%d]: want one SpecialToken or one Sequence", i)
		}
	}
	if texts != 1 {
		return fmt.Errorf("single has the text %d times; want once", texts)
	}
	t.template.wrap(prefix, suffix)
	return nil
}
