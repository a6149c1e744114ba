package server

// chatReply is an answer or an event of one.
type chatReply struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Print   string       `json:"system_fingerprint,omitempty"`
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage,omitempty"`
}

// chatChoice is one answer, or a part of it.
type chatChoice struct {
	Index    int           `json:"index"`
	Message  *chatMessage  `json:"message,omitempty"`
	Delta    *chatDelta    `json:"delta,omitempty"`
	Logprobs *chatLogprobs `json:"logprobs"`
	Reason   *string       `json:"finish_reason"`
}

type chatMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

type chatDelta struct {
	Role    string     `json:"role,omitempty"`
	Content *string    `json:"content,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

type chatLogprobs struct {
	Content []chatToken `json:"content"`
}

type chatToken struct {
	chatAlternative
	Top []chatAlternative `json:"top_logprobs"`
}

type chatAlternative struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// chatDialect writes chat answers. With tools the text is held back until it is known whether it calls one.
type chatDialect struct{ tools bool }

func (d *chatDialect) reply(c *call, object string, list ...chatChoice) chatReply {
	if list == nil {
		list = []chatChoice{}
	}
	return chatReply{ID: c.id, Object: object, Created: c.created, Model: c.model.ID, Print: c.model.Print,
		Choices: list}
}

const chunkObject = "chat.completion.chunk"

func (d *chatDialect) begin(c *call, i int) any {
	empty := ""
	return d.reply(c, chunkObject, chatChoice{Index: i, Delta: &chatDelta{Role: "assistant", Content: &empty}})
}

func (d *chatDialect) chunk(c *call, i int, p piece) any {
	delta := &chatDelta{Content: &p.text}
	if d.tools {
		if len(p.tokens) == 0 {
			return nil
		}
		delta = &chatDelta{}
	}
	return d.reply(c, chunkObject, chatChoice{Index: i, Delta: delta, Logprobs: c.chatLogprobs(p.tokens)})
}

func (d *chatDialect) end(c *call, ch *choice) any {
	delta := &chatDelta{}
	reason := ch.reason
	if d.tools {
		text, calls := parseToolCalls(ch.text.String())
		if delta.Calls = calls; len(calls) > 0 && reason == "stop" {
			reason = "tool_calls"
		}
		if text != "" {
			delta.Content = &text
		}
	}
	return d.reply(c, chunkObject, chatChoice{Index: ch.index, Delta: delta, Reason: &reason})
}

func (d *chatDialect) total(c *call, u usage) any {
	v := d.reply(c, chunkObject)
	v.Usage = &u
	return v
}

func (d *chatDialect) whole(c *call, list []*choice, u usage) any {
	v := d.reply(c, "chat.completion")
	v.Usage = &u
	for _, ch := range list {
		text, reason := ch.text.String(), ch.reason
		msg := &chatMessage{Role: "assistant", Content: &text}
		if d.tools {
			if text, msg.Calls = parseToolCalls(text); len(msg.Calls) > 0 {
				if reason == "stop" {
					reason = "tool_calls"
				}
				if text == "" {
					msg.Content = nil
				}
			}
		}
		v.Choices = append(v.Choices, chatChoice{Index: ch.index, Message: msg, Logprobs: c.chatLogprobs(ch.tokens),
			Reason: &reason})
	}
	return v
}

// chatLogprobs writes tokens in the form of this route; nil if they were not requested.
func (c *call) chatLogprobs(tokens []tokenInfo) *chatLogprobs {
	if !c.logprobs {
		return nil
	}
	l := &chatLogprobs{Content: []chatToken{}}
	for _, t := range tokens {
		x := chatToken{chatAlternative: c.alternative(t.id, t.logprob), Top: []chatAlternative{}}
		for _, alt := range t.top[:min(c.top, len(t.top))] {
			x.Top = append(x.Top, c.alternative(alt.ID, alt.Logprob))
		}
		l.Content = append(l.Content, x)
	}
	return l
}

func (c *call) alternative(id int32, logprob float64) chatAlternative {
	text, raw := c.model.spell(id)
	a := chatAlternative{Token: text, Logprob: finite(logprob), Bytes: make([]int, len(raw))}
	for i, b := range raw {
		a.Bytes[i] = int(b)
	}
	return a
}
