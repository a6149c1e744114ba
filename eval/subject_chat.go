package eval

import (
	"strings"

	"antiphase/tokenizer"
)

// prompt returns the ids before an answer: the text itself, or the text as a user message in the chat template, which
// includes its own first token.
func (s *Subject) prompt(text string) ([]int32, error) {
	if s.Template == nil {
		return s.Encode(text), nil
	}
	rendered, err := s.Template(text)
	if err != nil {
		return nil, err
	}
	return s.Tokenizer.Encode(rendered, tokenizer.NoTemplate), nil
}

// split encodes a context and its continuation; the continuation begins at from. In running text both are encoded
// together, and white space at the context's end counts as part of the continuation. An answer to a message has no
// leading space.
func (s *Subject) split(r Continuation) (ids []int32, from int, err error) {
	if s.Template == nil {
		return s.Encode(r.Context + r.Text), len(s.Encode(strings.TrimRight(r.Context, " \t\n"))), nil
	}
	if ids, err = s.prompt(r.Context); err != nil {
		return nil, 0, err
	}
	from = len(ids)
	return s.Tokenizer.EncodeOrdinary(ids, answerText(r.Text)), from, nil
}

// answerText is a continuation as the beginning of an answer.
func answerText(s string) string { return strings.TrimLeft(s, " ") }

// Count is the number of tokens of a prompt.
func (s *Subject) Count(text string) int {
	ids, err := s.prompt(text)
	if err != nil {
		return len(s.Encode(text)) // asking will report the error
	}
	return len(ids)
}

// answers encodes options as answers to a message.
func (s *Subject) answers(r Choice) (list [][]int32, prompt int, err error) {
	ids, err := s.prompt(r.Prompt)
	if err != nil {
		return nil, 0, err
	}
	for _, o := range r.Options {
		list = append(list, s.Tokenizer.EncodeOrdinary(ids[:len(ids):len(ids)], answerText(o)))
	}
	return list, len(ids), nil
}
