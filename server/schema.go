package server

import "antiphase/infer"

// format reads response_format. The result makes a fresh constraint for every choice, nil for plain text.
func (s *Server) format(o *object, m *Model, p *infer.Sampling) func() infer.Constraint {
	o.only("response_format", "only plain text is served", `{"type":"text"}`)
	return func() infer.Constraint { return nil }
}
