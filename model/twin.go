package model

// Twin returns a second model over the weights of m, with its own memory for passes and its own interventions. A pass
// of one may be interrupted between ops by passes of the other. Free the twin before m.
func Twin(m *Model) *Model {
	t := over(newNetwork(m.dev, m.Config, m.Split(), m.rope))
	t.lead, t.twin = m.lead, true
	t.Params.Share(m.Params)
	t.findShared()
	return t
}
