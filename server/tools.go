package server

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// Tools are passed to the model's own template, and calls are parsed in the form that most templates use: a JSON object
// between <tool_call> and </tool_call>. A template that does not mention tools cannot pass them on, and such a request
// is rejected rather than answered without.

// toolCall is a call by the model.
type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

const maxTools = 128

// readTools reads tools and tool_choice.
func (o *form) readTools(t *conversation) {
	m := o.model
	o.ignore("parallel_tool_calls")
	var choice any
	o.decode("tool_choice", &choice, "a string or an object")
	raw, ok := o.raw("tools")
	if !ok {
		if choice != nil && choice != "none" && choice != "auto" {
			o.refuse("tool_choice", "needs tools")
		}
		return
	}
	list, err := checkTools(raw)
	if err != "" {
		o.refuse("tools", "%s", err)
		return
	}
	if len(list) == 0 || choice == "none" {
		return
	}
	if choice != nil && choice != "auto" {
		o.refuse("tool_choice", "only none and auto are served: the model cannot be made to call a tool")
	}
	if m.Template == nil || !strings.Contains(m.Template.Source(), "tools") {
		o.refuse("tools", "the chat template of %s has no place for tools", m.ID)
	}
	t.Tools = list
}

// checkTools reads the list and reports what is wrong with it.
func checkTools(raw json.RawMessage) (list []json.RawMessage, problem string) {
	if json.Unmarshal(raw, &list) != nil || len(list) > maxTools {
		return nil, "must be a list of at most 128 tools"
	}
	for _, b := range list {
		var tool struct {
			Type     string
			Function *struct {
				Name       string
				Parameters map[string]any
			}
		}
		if json.Unmarshal(b, &tool) != nil || tool.Type != "function" || tool.Function == nil ||
			!toolName.MatchString(tool.Function.Name) {
			return nil,
				`each must be {"type":"function","function":{"name":…}}, with a name of letters, digits, _ and -`
		}
	}
	return list, ""
}

// toolCalls reads the calls of an earlier answer. Arguments become an object, as templates expect them.
func (o *object) toolCalls() []any {
	var list []map[string]any
	if !o.decode("tool_calls", &list, "a list of calls") {
		return nil
	}
	var out []any
	for i, c := range list {
		f, ok := c["function"].(map[string]any)
		if !ok {
			o.refuse("tool_calls", "entry %d has no function", i)
			return nil
		}
		if text, ok := f["arguments"].(string); ok {
			var args map[string]any
			if json.Unmarshal([]byte(text), &args) == nil {
				f["arguments"] = args
			}
		}
		out = append(out, c)
	}
	return out
}

// parseToolCalls finds the calls in an answer and returns the other text. An incomplete call remains text.
func parseToolCalls(text string) (rest string, calls []toolCall) {
	const open, end = "<tool_call>", "</tool_call>"
	for {
		i := strings.Index(text, open)
		if i < 0 {
			break
		}
		j := strings.Index(text[i:], end)
		if j < 0 {
			break
		}
		var call struct {
			Name      string
			Arguments json.RawMessage
		}
		body := text[i+len(open) : i+j]
		if json.Unmarshal([]byte(body), &call) != nil || !toolName.MatchString(call.Name) {
			rest += text[:i+j+len(end)]
		} else {
			t := toolCall{Index: len(calls), ID: newID("call_"), Type: "function"}
			t.Function.Name, t.Function.Arguments = call.Name, compact(call.Arguments)
			calls = append(calls, t)
			rest += text[:i]
		}
		text = text[i+j+len(end):]
	}
	rest += text
	if len(calls) > 0 {
		rest = strings.TrimSpace(rest)
	}
	return rest, calls
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return "{}"
	}
	return b.String()
}
