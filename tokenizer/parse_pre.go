package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxNesting bounds nested Sequences.
const maxNesting = 16

// typeOf returns a component's type.
func typeOf(raw json.RawMessage) (string, error) {
	var c struct {
		Type *string `json:"type"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", err
	}
	if c.Type == nil {
		return "", errors.New("type is missing")
	}
	return *c.Type, nil
}

// walk calls leaf for every component of raw in order, Sequences flattened; list is the field a Sequence keeps them in.
func walk(raw json.RawMessage, list string, depth int, leaf func(kind string, raw json.RawMessage) error) error {
	if isNull(raw) && depth == 0 {
		return nil
	}
	if depth > maxNesting {
		return fmt.Errorf("more than %d Sequences inside each other", maxNesting)
	}
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	if kind != "Sequence" {
		if err := leaf(kind, raw); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		return nil
	}
	var seq map[string]json.RawMessage
	if err := json.Unmarshal(raw, &seq); err != nil {
		return err
	}
	for key := range seq {
		if key != "type" && key != list {
			return fmt.Errorf("a Sequence has the unknown field %q; want %s", key, list)
		}
	}
	var items []json.RawMessage
	if err := json.Unmarshal(seq[list], &items); err != nil || items == nil {
		return fmt.Errorf("a Sequence needs %s, a list", list)
	}
	for i, item := range items {
		if err := walk(item, list, depth+1, leaf); err != nil {
			return fmt.Errorf("%s[%d]: %w", list, i, err)
		}
	}
	return nil
}

// patternJSON is {"String": s} or {"Regex": s}.
type patternJSON struct {
	String *string
	Regex  *string
}

func (p patternJSON) compile(b *budget) (pattern, error) {
	switch {
	case p.String != nil && p.Regex == nil:
		return pattern{literal: *p.String, budget: b}, nil
	case p.Regex != nil && p.String == nil:
		return compileRegex(*p.Regex, b)
	}
	return pattern{}, errors.New("pattern must be one String or one Regex")
}

// oneChar checks that s is a single character.
func oneChar(field, s string) error {
	if utf8.RuneCountInString(s) != 1 {
		return fmt.Errorf("%s %q must be one character", field, s)
	}
	return nil
}

func parsePre(raw json.RawMessage, b *budget) ([]preTokenizer, error) {
	return parseEach(raw, "pretokenizers", b, parseOnePre)
}

// parseEach parses the components of a sequence, or a single component.
func parseEach[T any](raw json.RawMessage, key string, b *budget,
	parse func(string, json.RawMessage, *budget) (T, error)) (out []T, err error) {
	err = walk(raw, key, 0, func(kind string, raw json.RawMessage) error {
		x, err := parse(kind, raw, b)
		out = append(out, x)
		return err
	})
	return out, err
}

// byteLevelFields are those of ByteLevel, which is a component of several kinds with the same fields.
type byteLevelFields struct {
	Type     string `json:"type"`
	Prefix   *bool  `json:"add_prefix_space"`
	Trim     *bool  `json:"trim_offsets"`
	UseRegex *bool  `json:"use_regex"`
}

func parseOnePre(kind string, raw json.RawMessage, b *budget) (preTokenizer, error) {
	var c struct {
		byteLevelFields
		Pattern    json.RawMessage `json:"pattern"`
		Behavior   behavior        `json:"behavior"`
		Invert     bool            `json:"invert"`
		Individual bool            `json:"individual_digits"`
		Rep        *string         `json:"replacement"`
		Scheme     *string         `json:"prepend_scheme"`
		Split      *bool           `json:"split"`
		StrRep     *string         `json:"str_rep"` // written by old versions, a copy of replacement
		Delimiter  *string         `json:"delimiter"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, err
	}
	switch kind {
	case "ByteLevel":
		return byteLevelPre{c.Prefix == nil || *c.Prefix, c.UseRegex == nil || *c.UseRegex}, nil
	case "Split":
		return parseSplit(c.Pattern, c.Behavior, c.Invert, b)
	case "Digits":
		do := contiguous
		if c.Individual {
			do = isolated
		}
		return splitPre{matchRune(isDigit), do, false}, nil
	case "Punctuation":
		if c.Behavior == "" {
			c.Behavior = isolated
		}
		return splitPre{matchRune(isPunct), c.Behavior, false}, c.Behavior.check()
	case "WhitespaceSplit":
		return splitPre{matchRune(unicode.IsSpace), removed, false}, nil
	case "Whitespace":
		return whitespacePre(), nil
	case "Metaspace":
		rep, scheme, err := metaspaceFields(c.Rep, c.Scheme, c.Prefix)
		return metaspacePre{rep, scheme, c.Split == nil || *c.Split}, err
	}
	return nil, errors.New("this pre-tokenizer is not supported")
}

// metaspaceFields resolves the fields of old and new files; the default scheme is always.
func metaspaceFields(rep, scheme *string, prefix *bool) (string, string, error) {
	r, s := "▁", "always"
	if rep != nil {
		r = *rep
	}
	if prefix != nil && !*prefix {
		s = "never"
	}
	if scheme != nil {
		s = *scheme
	}
	if s != "always" && s != "first" && s != "never" {
		return "", "", fmt.Errorf("unknown prepend_scheme %q; known are always, first, never", s)
	}
	return r, s, oneChar("replacement", r)
}

func parseSplit(raw json.RawMessage, do behavior, invert bool, b *budget) (preTokenizer, error) {
	if err := do.check(); err != nil {
		return nil, err
	}
	var pj patternJSON
	if err := strict(raw, &pj); err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	if pj.Regex != nil && pj.String == nil {
		if scan := knownScanner(*pj.Regex); scan != nil {
			if do == isolated || do == removed && invert {
				return scanPre{scan}, nil
			}
			return splitPre{matchScanner(scan), do, invert}, nil
		}
	}
	p, err := pj.compile(b)
	return splitPre{matchPattern(p), do, invert}, err
}

func parseNormalizer(raw json.RawMessage, b *budget) ([]normalizer, error) {
	var out []normalizer
	err := walk(raw, "normalizers", 0, func(kind string, raw json.RawMessage) error {
		n, err := parseOneNormalizer(kind, raw, b)
		out = append(out, n)
		return err
	})
	return out, err
}

func parseOneNormalizer(kind string, raw json.RawMessage, b *budget) (normalizer, error) {
	var c struct {
		Type    string          `json:"type"`
		Prepend string          `json:"prepend"`
		Pattern json.RawMessage `json:"pattern"`
		Content string          `json:"content"`
		Left    *bool           `json:"strip_left"`
		Right   *bool           `json:"strip_right"`
	}
	if err := strict(raw, &c); err != nil {
		return nil, err
	}
	switch kind {
	case "NFC":
		return normalForm(norm.NFC), nil
	case "NFD":
		return normalForm(norm.NFD), nil
	case "NFKC":
		return normalForm(norm.NFKC), nil
	case "NFKD":
		return normalForm(norm.NFKD), nil
	case "Lowercase":
		return textNormalizer(lowercase), nil
	case "StripAccents":
		return textNormalizer(stripAccents), nil
	case "Strip":
		return strip(c.Left == nil || *c.Left, c.Right == nil || *c.Right), nil
	case "Prepend":
		return prepend(c.Prepend), nil
	case "Replace":
		var pj patternJSON
		if err := strict(c.Pattern, &pj); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		p, err := pj.compile(b)
		if len(b.probes) < 64 {
			b.probes = append(b.probes, p.literal, clip(c.Content))
		}
		return replaceNormalizer(p, c.Content), err
	}
	return nil, errors.New("this normalizer is not supported")
}
