package server

import (
	"net/http"
	"testing"
)

// Fields of a message that clients send back from an earlier answer are taken and have no effect; others are not taken.
func TestFieldsOfMessages(t *testing.T) {
	r := newRig(t, setup{})
	send := func(field string) (int, []byte) {
		msg := fieldsOf{"role": "assistant", "content": "hi"}
		if field != "" {
			msg[field] = "x"
		}
		status, _, b := r.do("POST", "/tokenize", fieldsOf{"messages": []fieldsOf{msg}})
		return status, b
	}
	_, want := send("")
	for _, field := range []string{"refusal", "annotations", "audio", "function_call", "name", "tool_call_id"} {
		if status, b := send(field); status != http.StatusOK || string(b) != string(want) {
			t.Errorf("%s: %d %s, want %s", field, status, b, want)
		}
	}
	for _, field := range []string{"Content", "refusals", "weight"} {
		if status, b := send(field); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", field, status, b)
		}
	}
}
