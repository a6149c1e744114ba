package server

import "net/http"

// spareValues is the number of JSON values that a body may have besides the ids of its prompts: messages, tools,
// schemas, biases.
const spareValues = 1 << 16

// checkValues refuses a body of more JSON values than any request needs: as many ids as the prompts of one request may
// have, and spareValues. Decoded, a value of two bytes takes up to 150, so eight megabytes of them would take a
// gigabyte and seconds of processor time.
func checkValues(b []byte, l *Limits, models []*Model) error {
	context := 0
	for _, m := range models {
		context = max(context, m.Context)
	}
	most := l.Prompts*context + spareValues
	if n := countValues(b); n > most {
		return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Code: "too_many_values",
			Message: "the body has more JSON values than any request needs",
			Extra:   map[string]any{"values": n, "limit": most}}
	}
	return nil
}

// countValues is at least the number of values in b, which need not be valid: each but the first follows a comma, a
// bracket or a colon.
func countValues(b []byte) int {
	n := 1
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += len(quotedText(b[i:])) - 1
		case ',', '[', '{', ':':
			n++
		}
	}
	return n
}
