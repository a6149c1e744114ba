package chat

import "slices"

// blockParser reads statements.
type blockParser struct {
	parser
	depth int // of blocks
	loops int // of these that are loops, up to the macro
}

// compile reads a template.
func compile(source string, trim, keepNewline bool) []stmt {
	p := &blockParser{parser: parser{cursor: cursor{tokens: lex(source, trim, keepNewline)}}}
	list := p.statements()
	if all := append(p.errors, p.unknown...); len(all) > 0 {
		fail("%s", all[0])
	}
	return list
}

// statements reads text and tags up to a tag that begins with one of these words, which becomes the current token;
// without words, up to the end of the template.
func (p *blockParser) statements(ends ...string) (list []stmt) {
	for {
		switch t := p.now(); t.kind {
		case dataToken:
			p.advance()
			list = append(list, &dataStmt{t.text})
		case printBegin:
			p.advance()
			list = append(list, &printStmt{p.tuple(tupleRules{cond: true})})
			p.want(printEnd, "}}")
		case blockBegin:
			p.advance()
			if w := p.now(); w.kind == nameToken && slices.Contains(ends, w.text) {
				return list
			}
			list = append(list, p.statement())
			p.want(blockEnd, "%}")
		default:
			if len(ends) > 0 {
				p.fail("a block has no %s", ends[len(ends)-1])
			}
			return list
		}
	}
}

// body reads the rest of a tag and what follows up to a tag with one of these words.
func (p *blockParser) body(ends ...string) []stmt {
	p.skip(":")
	p.want(blockEnd, "%}")
	if p.depth++; p.depth > maxBlocks {
		p.fail("more than %d blocks inside each other", maxBlocks)
	}
	list := p.statements(ends...)
	p.depth--
	return list
}

// bodyTo is body up to a word, which is taken.
func (p *blockParser) bodyTo(end string) []stmt {
	list := p.frame(end)
	p.advance()
	return list
}

// frame is the body of a statement other than if.
func (p *blockParser) frame(ends ...string) []stmt {
	before := len(p.unknown)
	list := p.body(ends...)
	p.errors = append(p.errors, p.unknown[before:]...)
	p.unknown = p.unknown[:before]
	return list
}

// statement reads what is in a tag after {%, and the blocks that belong to it.
func (p *blockParser) statement() stmt {
	t := p.want(nameToken, "a statement")
	switch t.text {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement()
	case "set":
		return p.setStatement()
	case "macro":
		return p.macroStatement()
	case "call":
		return p.callStatement()
	case "with":
		return p.withStatement()
	case "filter":
		f := &filterStmt{filter: p.blockFilter(p.filter(nil))}
		f.body = p.bodyTo("endfilter")
		return f
	case "generation":
		return &scopeStmt{body: p.bodyTo("endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			p.fail("%s outside of a loop", t.text)
		}
		return &signalStmt{map[string]signal{"break": breakLoop, "continue": continueLoop}[t.text]}
	}
	p.fail("statement %.40q is not supported", t.text)
	return nil
}

func (p *blockParser) ifStatement() stmt {
	s := &ifStmt{}
	before := len(p.unknown)
	defer func() { p.unknown = p.unknown[:before] }()
	for {
		s.tests = append(s.tests, p.tuple(tupleRules{}))
		s.bodies = append(s.bodies, p.body("elif", "else", "endif"))
		switch p.advance().text {
		case "else":
			s.bodies = append(s.bodies, p.body("endif"))
			p.advance()
			return s
		case "endif":
			return s
		}
	}
}

func (p *blockParser) forStatement() stmt {
	s := &forStmt{target: p.target("in", false)}
	p.expect("in")
	s.over = p.tuple(tupleRules{end: "recursive"})
	if p.skip("if") {
		s.test = p.expression(true)
	}
	if p.now().is("recursive") {
		p.fail("a recursive loop is not supported")
	}
	p.loops++
	s.body = p.frame("endfor", "else")
	p.loops--
	if p.advance().text == "else" {
		s.otherwise = p.bodyTo("endfor")
	}
	return s
}

func (p *blockParser) setStatement() stmt {
	s := &setStmt{target: p.target("", true)}
	if p.skip("=") {
		s.value = p.tuple(tupleRules{cond: true})
		return s
	}
	if p.now().is("|") {
		p.advance()
		s.filter = p.blockFilter(p.filter(nil))
	}
	s.body = p.bodyTo("endset")
	return s
}

// blockFilter reads further filters of a block.
func (p *blockParser) blockFilter(x expr) expr {
	for p.skip("|") {
		x = p.filter(x)
	}
	return x
}

// target reads what is assigned to, up to a word.
func (p *blockParser) target(end string, namespaces bool) *target {
	if namespaces && p.look().is(".") {
		t := &target{name: p.name()}
		p.advance()
		t.attribute = p.name()
		return t
	}
	return p.assignable(p.tuple(tupleRules{names: true, end: end}))
}

// assignable converts an expression to a target.
func (p *blockParser) assignable(x expr) *target {
	switch x := x.(type) {
	case *nameExpr:
		return &target{name: x.name}
	case *tupleExpr:
		t := &target{many: true}
		for _, e := range x.items {
			t.parts = append(t.parts, p.assignable(e))
		}
		return t
	}
	p.fail("only names and attributes of a namespace can be set")
	return nil
}

// signature reads a macro's parameters.
func (p *blockParser) signature(m *macroDef) {
	p.expect("(")
	for !p.skip(")") {
		if m.params != nil {
			p.expect(",")
		}
		m.params = append(m.params, p.name())
		if p.skip("=") {
			m.defaults = append(m.defaults, p.expression(true))
		} else if m.defaults != nil {
			p.fail("a parameter without a default after one that has one")
		}
	}
}

// macroBody reads a macro's body and notes which of the special names it uses.
func (p *blockParser) macroBody(m *macroDef, end string) {
	from, loops := len(p.names), p.loops
	p.loops = 0
	m.body = p.bodyTo(end)
	p.loops = loops
	m.uses = map[string]bool{}
	for _, name := range p.names[from:] {
		if slices.Contains([]string{"caller", "varargs", "kwargs"}, name) && !slices.Contains(m.params, name) {
			m.uses[name] = true
		}
	}
}

func (p *blockParser) macroStatement() stmt {
	m := &macroDef{name: p.name()}
	p.signature(m)
	p.macroBody(m, "endmacro")
	return &macroStmt{m}
}

func (p *blockParser) callStatement() stmt {
	m := &macroDef{name: "caller", anonymous: true}
	if p.now().is("(") {
		p.signature(m)
	}
	call, ok := p.expression(true).(*callExpr)
	if !ok {
		p.fail("expected a call")
	}
	p.macroBody(m, "endcall")
	return &callStmt{call, m}
}

func (p *blockParser) withStatement() stmt {
	s := &scopeStmt{}
	for p.now().kind != blockEnd {
		if s.targets != nil {
			p.expect(",")
		}
		s.targets = append(s.targets, p.target("", false))
		p.expect("=")
		s.values = append(s.values, p.expression(true))
	}
	s.body = p.bodyTo("endwith")
	return s
}
