package chat

// cursor goes over tokens.
type cursor struct {
	tokens []token
	at     int
}

func (p *cursor) now() token { return p.tokens[p.at] }

// look is the token after the current one.
func (p *cursor) look() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *cursor) advance() token {
	t := p.now()
	p.at = min(p.at+1, len(p.tokens)-1)
	return t
}

// skip takes the current token if it is this name or operator.
func (p *cursor) skip(text string) bool {
	if !p.now().is(text) {
		return false
	}
	p.advance()
	return true
}

// expect takes a token that must be this name or operator.
func (p *cursor) expect(text string) {
	if !p.skip(text) {
		p.fail("expected %q, got %v", text, p.now())
	}
}

// want takes a token that must be of a kind.
func (p *cursor) want(k kind, what string) token {
	if p.now().kind != k {
		p.fail("expected %s, got %v", what, p.now())
	}
	return p.advance()
}

func (p *cursor) name() string { return p.want(nameToken, "a name").text }

// fail ends the reading.
func (p *cursor) fail(format string, args ...any) {
	fail("line %d: "+format, append([]any{p.now().line}, args...)...)
}
