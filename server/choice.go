package server

import (
	"slices"
	"strings"
	"unicode/utf8"

	"antiphase/infer"
)

// tokenInfo is a token of a choice with its log-probability.
type tokenInfo struct {
	id      int32
	first   bool // the prompt's first token, which has no probability
	logprob float64
	top     []infer.TokenLogprob
	offset  int // in bytes of the text, then in characters once it is released
}

// choice assembles one sequence's events. A token is released together with the text that it begins, so that tokens of
// a stop string are dropped with it, streamed or not.
type choice struct {
	index    int
	logprobs bool // tokens are requested
	keep     bool // until the end

	text    strings.Builder
	tokens  []tokenInfo // if they are kept
	seen    int         // released and pending
	pending []tokenInfo
	cursor  int // bytes of text whose characters are counted
	chars   int

	begun     bool
	generated int
	cached    int
	reason    string // OpenAI's finish_reason
	failed    bool   // ended without a finish_reason
}

// piece is what an event adds to a choice.
type piece struct {
	text   string
	tokens []tokenInfo
	done   bool
}

// add takes the next event.
func (c *choice) add(ev infer.Event) piece {
	c.text.WriteString(ev.Text)
	c.cached = ev.Cached
	if ev.ID >= 0 && !ev.Prompt {
		c.generated++
	}
	if ev.ID >= 0 && c.logprobs {
		c.pending = append(c.pending, tokenInfo{id: ev.ID, first: ev.Prompt && c.seen == 0, logprob: ev.Logprob,
			top: slices.Clone(ev.Top), offset: ev.Offset})
		c.seen++
	}
	p := piece{text: ev.Text, done: ev.Done}
	n := 0
	for n < len(c.pending) && (c.pending[n].offset < c.text.Len() || ev.Done && !ev.Cut) {
		c.pending[n].offset = c.position(c.pending[n].offset)
		n++
	}
	p.tokens, c.pending = c.pending[:n:n], c.pending[n:]
	if c.keep {
		c.tokens = append(c.tokens, p.tokens...)
	}
	if ev.Done {
		switch ev.Reason {
		case infer.ReasonStop, infer.ReasonEOS, infer.ReasonComplete:
			c.reason = "stop"
		case infer.ReasonLength:
			c.reason = "length"
		default:
			c.failed = true
		}
	}
	return p
}

// position converts a byte offset to one in characters. Offsets come in order.
func (c *choice) position(offset int) int {
	offset = min(offset, c.text.Len())
	c.chars += utf8.RuneCountInString(c.text.String()[c.cursor:offset])
	c.cursor = offset
	return c.chars
}

// lowest replaces −Inf in JSON.
const lowest = -9999.0

func finite(x float64) float64 {
	return max(x, lowest)
}

// usage is OpenAI's count of tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// count sums the choices of a call with n choices per prompt.
func count(list []*choice, reqs []infer.Request, n int) (u usage) {
	for i, c := range list {
		if i%n == 0 {
			u.Prompt += len(reqs[i].IDs)
			most := 0
			for _, d := range list[i : i+n] {
				most = max(most, d.cached)
			}
			u.Details.Cached += most
		}
		u.Completion += c.generated
	}
	u.Total = u.Prompt + u.Completion
	return u
}
