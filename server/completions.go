package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// completions continues prompts: texts or token ids, one or several.
func (t *textRoutes) completions(w http.ResponseWriter, r *http.Request) {
	c, err := t.parseCompletions(w, r)
	if err != nil {
		t.fail(w, r, err)
		return
	}
	t.run(w, r, c)
}

func (t *textRoutes) parseCompletions(w http.ResponseWriter, r *http.Request) (*call, error) {
	o, err := t.openCall(w, r)
	if err != nil {
		return nil, err
	}
	c := &call{model: o.model, id: newID("cmpl-"), created: time.Now().Unix(), dialect: completionDialect{}}
	p := o.sampling()
	c.stream, c.usage = o.streaming()
	c.n = int(o.whole("n", 1, 1, int64(o.limits.Choices)))
	if best := o.whole("best_of", int64(c.n), 1, 1<<30); int(best) != c.n {
		o.refuse("best_of", "is %d, must equal n: choosing among more answers than are returned is not done here", best)
	}
	o.only("suffix", "filling in between two texts is not done here", `""`)
	p.Echo = o.flag("echo", false)
	if _, ok := o.raw("logprobs"); ok {
		c.logprobs, c.top = true, int(o.whole("logprobs", 0, 0, int64(o.limits.Logprobs)))
	}
	max, given := o.maxTokens("max_tokens")
	if p.MaxTokens = max; given && max == 0 {
		if p.ScoreOnly = true; !p.Echo {
			o.refuse("max_tokens", "is 0, must be positive unless echo is set")
		}
	}
	salt := o.salt()
	special := o.flag("add_special_tokens", true)
	cut := int(o.whole("truncate_prompt_tokens", 0, 1, int64(o.model.Context)))
	prompts := o.prompts("prompt", special, cut > 0)
	format := o.format(&p)
	if err := o.finish(); err != nil {
		return nil, err
	}
	for _, ids := range prompts {
		c.ask(ids, cut, p, format)
	}
	return c, t.prepare(r, c, salt)
}

// prompts reads a field of texts: a string, a list of strings, a list of ids or a list of lists of ids. If it will be
// truncated a text may be longer than the context.
func (o *form) prompts(name string, special, cut bool) (out [][]int32) {
	const want = "must be a string, a list of strings, a list of token ids or a list of those"
	raw, ok := o.raw(name)
	if !ok {
		o.refuse(name, "is missing, "+want)
		return nil
	}
	for _, item := range o.items(name, raw) {
		var text string
		ids, list := parseIDs(item)
		switch {
		case list:
			if err := o.model.checkIDs(name, ids); err != nil {
				o.fail(err)
			}
		case string(bytes.TrimSpace(item)) != "null" && json.Unmarshal(item, &text) == nil:
			if err := o.model.fits(name, text); err != nil && !cut {
				o.fail(err)
				return nil
			}
			ids = o.model.encode(text, special)
		default:
			o.refuse(name, "is %s, "+want, excerpt(raw))
		}
		if len(ids) == 0 {
			o.refuse(name, "has no tokens, must have at least one")
		}
		if out = append(out, ids); len(out) > o.limits.Prompts {
			o.refuse(name, "is a list of more than %d, the most that one request may have", o.limits.Prompts)
		}
		if o.err != nil {
			return nil
		}
	}
	return out
}

// items splits a field that may be one value or a list of them. A list of numbers is one value.
func (o *object) items(name string, raw json.RawMessage) []json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if raw[0] != '[' {
		return []json.RawMessage{raw}
	}
	if first := bytes.TrimSpace(raw[1:]); first[0] != '"' && first[0] != '[' && first[0] != ']' {
		return []json.RawMessage{raw}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		o.refuse(name, "is an empty list, must have at least one entry")
		return nil
	}
	return list
}

// completionChoice is one answer, or a part of it.
type completionChoice struct {
	Index    int                 `json:"index"`
	Text     string              `json:"text"`
	Logprobs *completionLogprobs `json:"logprobs"`
	Reason   *string             `json:"finish_reason"`
}

// completionLogprobs are parallel lists, one entry per token.
type completionLogprobs struct {
	Tokens  []string             `json:"tokens"`
	Logprob []*float64           `json:"token_logprobs"`
	Top     []map[string]float64 `json:"top_logprobs"`
	Offset  []int                `json:"text_offset"`
}

// completionReply is an answer or an event of one.
type completionReply struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Print   string             `json:"system_fingerprint,omitempty"`
	Choices []completionChoice `json:"choices"`
	Usage   *usage             `json:"usage,omitempty"`
}

type completionDialect struct{}

func (completionDialect) reply(c *call, list ...completionChoice) completionReply {
	if list == nil {
		list = []completionChoice{}
	}
	return completionReply{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model.ID,
		Print: c.model.Print, Choices: list}
}

func (d completionDialect) begin(*call, int) any { return nil }

func (d completionDialect) chunk(c *call, i int, p piece) any {
	return d.reply(c, completionChoice{Index: i, Text: p.text, Logprobs: c.completionLogprobs(p.tokens)})
}

func (d completionDialect) end(c *call, ch *choice) any {
	return d.reply(c, completionChoice{Index: ch.index, Reason: &ch.reason})
}

func (d completionDialect) total(c *call, u usage) any {
	v := d.reply(c)
	v.Usage = &u
	return v
}

func (d completionDialect) whole(c *call, list []*choice, u usage) any {
	v := d.reply(c)
	v.Usage = &u
	for _, ch := range list {
		v.Choices = append(v.Choices, completionChoice{Index: ch.index, Text: ch.text.String(),
			Logprobs: c.completionLogprobs(ch.tokens), Reason: &ch.reason})
	}
	return v
}

// completionLogprobs writes tokens in the form of this route; nil if they were not requested.
func (c *call) completionLogprobs(tokens []tokenInfo) *completionLogprobs {
	if !c.logprobs {
		return nil
	}
	l := &completionLogprobs{Tokens: []string{}, Logprob: []*float64{}, Top: []map[string]float64{}, Offset: []int{}}
	for _, t := range tokens {
		text, _ := c.model.spell(t.id)
		var lp *float64
		top := map[string]float64{} // not null for the first token: OpenAI's Go client cannot read that
		if !t.first {
			x := finite(t.logprob)
			lp = &x
			for _, alt := range t.top[:min(c.top, len(t.top))] {
				name, _ := c.model.spell(alt.ID)
				if _, twice := top[name]; !twice { // two ids with one spelling: keep the more likely
					top[name] = finite(alt.Logprob)
				}
			}
			if _, there := top[text]; !there {
				top[text] = x
			}
		}
		l.Tokens, l.Logprob, l.Top, l.Offset = append(l.Tokens, text), append(l.Logprob, lp), append(l.Top, top),
			append(l.Offset, t.offset)
	}
	return l
}
