package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"antiphase/tokenizer"
	"antiphase/tokenizer/chat"
)

// chat answers a conversation, rendered with the model's template.
func (t *textRoutes) chat(w http.ResponseWriter, r *http.Request) {
	c, err := t.parseChat(w, r)
	if err != nil {
		t.fail(w, r, err)
		return
	}
	t.run(w, r, c)
}

func (t *textRoutes) parseChat(w http.ResponseWriter, r *http.Request) (*call, error) {
	o, err := t.openCall(w, r)
	if err != nil {
		return nil, err
	}
	d := &chatDialect{}
	c := &call{model: o.model, id: newID("chatcmpl-"), created: time.Now().Unix(), dialect: d}
	p := o.sampling()
	c.stream, c.usage = o.streaming()
	c.n = int(o.whole("n", 1, 1, int64(o.limits.Choices)))
	c.logprobs = o.flag("logprobs", false)
	if c.top = int(o.whole("top_logprobs", 0, 0, int64(o.limits.Logprobs))); c.top > 0 && !c.logprobs {
		o.refuse("top_logprobs", "needs logprobs")
	}
	max, given := o.maxTokens("max_tokens", "max_completion_tokens")
	if p.MaxTokens = max; given && max == 0 {
		o.refuse("max_tokens", "is 0, must be positive")
	}
	salt := o.salt()
	o.only("modalities", "only text is made here", `["text"]`)
	o.only("functions", "is the old form of tools; use that")
	o.only("function_call", "is the old form of tool_choice; use that")
	talk := o.conversation()
	d.tools = talk.Tools != nil
	format := o.format(&p)
	cut := int(o.whole("truncate_prompt_tokens", 0, 1, int64(o.model.Context)))
	if err := o.finish(); err != nil {
		return nil, err
	}
	talk.long = cut > 0
	ids, err := o.model.render(talk)
	if err != nil {
		return nil, err
	}
	c.ask(ids, cut, p, format)
	return c, t.prepare(r, c, salt)
}

// conversation is the content of a chat request, ready to be rendered.
type conversation struct {
	chat.Conversation
	resume  string // continue_final_message: the text that the answer continues
	special bool   // add_special_tokens
	long    bool   // it may be longer than the context
}

// conversation reads messages, tools and template variables.
func (o *form) conversation() (t conversation) {
	m := o.model
	if m.Template == nil {
		o.refuse("messages", "the model %s has no chat template, so there is no form in which it knows "+
			"conversations; use /v1/completions, or serve it with --chat-template", m.ID)
	}
	list := o.messages()
	t.Messages = list
	t.Generate = o.flag("add_generation_prompt", true)
	t.special = o.flag("add_special_tokens", false)
	if o.flag("continue_final_message", false) {
		t.Generate = false
		if n := len(list); n > 0 {
			t.resume, _ = list[n-1].Content.(string)
		}
		if t.resume == "" {
			o.refuse("continue_final_message", "needs a last message with text")
		}
	}
	o.readTools(&t)
	t.Vars = o.templateVars()
	return t
}

// message is one of a conversation, as templates see it.
type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	Name    string `json:"name,omitempty"`
	Calls   []any  `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"`
}

var roles = []string{"system", "developer", "user", "assistant", "tool"}

func (o *form) messages() []message {
	var raw []json.RawMessage
	if !o.decode("messages", &raw, "a list of messages") || len(raw) == 0 {
		o.refuse("messages", "is missing or empty, must be a list of messages")
		return nil
	}
	if len(raw) > o.limits.Messages {
		o.refuse("messages", "has %d entries, at most %d are allowed", len(raw), o.limits.Messages)
		return nil
	}
	list := make([]message, 0, len(raw))
	for i, b := range raw {
		sub, err := parseObject(b)
		if err != nil {
			o.refuse("messages", "entry %d is %s, must be an object with role and content", i, excerpt(b))
			return nil
		}
		msg := sub.message()
		if err := sub.finish(); err != nil {
			o.refuse("messages", "entry %d: %s", i, err)
			return nil
		}
		list = append(list, msg)
	}
	return list
}

// message reads one message. The role developer is called system in templates.
func (o *object) message() message {
	m := message{Role: o.text("role"), Name: o.text("name"), CallID: o.text("tool_call_id")}
	o.ignore("refusal", "annotations", "audio", "function_call")
	if !slices.Contains(roles, m.Role) {
		o.refuse("role", "is %q, must be one of %s", excerpt([]byte(m.Role)), strings.Join(roles, ", "))
	}
	if m.Role == "developer" {
		m.Role = "system"
	}
	m.Calls = o.toolCalls()
	raw, ok := o.raw("content")
	if !ok {
		if m.Calls == nil {
			o.refuse("content", "is missing, must be a string or a list of text parts")
		}
		return m
	}
	var text string
	var parts []struct{ Type, Text string }
	switch {
	case json.Unmarshal(raw, &text) == nil:
	case json.Unmarshal(raw, &parts) == nil && !nullInList(raw):
		for _, p := range parts {
			if p.Type != "text" {
				o.refuse("content", "has a part of type %q; only text is read here", excerpt([]byte(p.Type)))
			}
			text += p.Text
		}
	default:
		o.refuse("content", "is %s, must be a string or a list of text parts", excerpt(raw))
	}
	m.Content = text
	return m
}

// templateVars reads chat_template_kwargs: plain values that the template mentions.
func (o *form) templateVars() map[string]any {
	var vars map[string]any
	if !o.decode("chat_template_kwargs", &vars, "an object") {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		switch vars[k].(type) {
		case bool, string, float64, nil:
		default:
			o.refuse("chat_template_kwargs", "%q is neither a string, a number nor a boolean", excerpt([]byte(k)))
		}
		reserved := []string{"messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "pad_token"}
		if len(vars) > 16 || k == "" || slices.Contains(reserved, k) || o.model.Template == nil ||
			!strings.Contains(o.model.Template.Source(), k) {
			o.refuse("chat_template_kwargs", "%q is not a variable that the model's template has for this",
				excerpt([]byte(k)))
		}
	}
	return vars
}

// render converts a conversation to the model's ids.
func (m *Model) render(t conversation) ([]int32, error) {
	text, err := m.Template.Render(t.Conversation)
	if err != nil {
		return nil, err
	}
	if t.resume != "" {
		final := strings.TrimSpace(t.resume)
		i := strings.LastIndex(text, final)
		if i < 0 {
			return nil, invalid("continue_final_message", "the template does not write the last message as it was sent")
		}
		text = text[:i+len(final)]
	}
	if err := m.fits("messages", text); err != nil && !t.long {
		return nil, err
	}
	if t.special {
		return m.encode(text, true), nil
	}
	if len(text) > smallBody {
		m.large.Lock()
		defer m.large.Unlock()
	}
	return m.Tokenizer.Encode(text, tokenizer.NoTemplate), nil
}
