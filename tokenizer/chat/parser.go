package chat

import (
	"fmt"
	"slices"
)

// parser reads expressions by jinja2's grammar.
type parser struct {
	cursor
	names []string // all that are read, for macros

	// Filters and tests that are not known are errors, as in jinja2, unless they are in a branch of an if or in an
	// inline if, which need not be reached. unknown are those that may still be found to be there, errors the others.
	unknown, errors []string
}

// expression reads an expression, without "a if b" at its top level if cond is false.
func (p *parser) expression(cond bool) expr {
	before := len(p.unknown)
	x := p.or()
	for cond && p.skip("if") {
		test := p.or()
		var no expr
		if p.skip("else") {
			no = p.expression(true)
		}
		x = &condExpr{test, x, no}
		p.unknown = p.unknown[:before]
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.skip("or") {
		x = &logicExpr{or: true, x: x, y: p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.skip("and") {
		x = &logicExpr{x: x, y: p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.skip("not") {
		return &notExpr{p.not()}
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() expr {
	c := &compareExpr{first: p.sum()}
	for {
		op := p.now().text
		switch {
		case p.now().kind == opToken && slices.Contains(comparisons, op):
			p.advance()
		case p.skip("in"):
		case p.now().is("not") && p.look().is("in"):
			p.at += 2
			op = "not in"
		case len(c.ops) == 0:
			return c.first
		default:
			return c
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, p.sum())
	}
}

// arith reads operands that are separated by operators of one rank.
func (p *parser) arith(operand func() expr, ops ...string) expr {
	x := operand()
	for p.now().kind == opToken && slices.Contains(ops, p.now().text) {
		x = &arithExpr{op: p.advance().text, x: x, y: operand()}
	}
	return x
}

func (p *parser) sum() expr { return p.arith(p.concat, "+", "-") }

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.skip("~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{parts}
}

func (p *parser) product() expr { return p.arith(p.power, "*", "/", "//", "%") }

func (p *parser) power() expr { return p.arith(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	var x expr
	if t := p.now(); t.is("-") || t.is("+") {
		p.advance()
		x = &signExpr{t.text, p.unary(false)}
	} else {
		x = p.primary()
	}
	x = p.postfix(x)
	if filters {
		x = p.filters(x)
	}
	return x
}

func (p *parser) primary() expr {
	switch t := p.advance(); {
	case t.kind == nameToken:
		switch t.text {
		case "true", "True":
			return &constant{true}
		case "false", "False":
			return &constant{false}
		case "none", "None":
			return &constant{nil}
		}
		p.names = append(p.names, t.text)
		return &nameExpr{t.text}
	case t.kind == textToken:
		s := t.value.(string) // the lexer gives these only texts
		for p.now().kind == textToken {
			s += p.advance().value.(string)
		}
		return &constant{s}
	case t.kind == numberToken:
		return &constant{t.value}
	case t.is("("):
		x := p.tuple(tupleRules{cond: true, empty: true})
		p.expect(")")
		return x
	case t.is("["):
		return &listExpr{p.items("]", func() expr { return p.expression(true) })}
	case t.is("{"):
		d := &dictExpr{}
		p.items("}", func() expr {
			d.keys = append(d.keys, p.expression(true))
			p.expect(":")
			d.values = append(d.values, p.expression(true))
			return nil
		})
		return d
	default:
		p.at--
		p.fail("unexpected %v", t)
	}
	return nil
}

// items reads what is between commas up to a closing bracket; there may be a comma before it.
func (p *parser) items(end string, item func() expr) (list []expr) {
	for !p.skip(end) {
		if list != nil {
			if p.expect(","); p.skip(end) {
				break
			}
		}
		list = append(list, item())
	}
	return list
}

// tupleRules say how a tuple is read.
type tupleRules struct {
	names bool   // only names and literals
	cond  bool   // "a if b" is allowed
	empty bool   // there may be none
	end   string // a word that ends it
}

// tuple reads an expression, or several that are separated by commas.
func (p *parser) tuple(rules tupleRules) expr {
	var list []expr
	for many := false; ; many = true {
		t := p.now()
		if t.kind == printEnd || t.kind == blockEnd || t.is(")") || rules.end != "" && t.is(rules.end) {
			if !many && !rules.empty {
				p.fail("expected an expression, got %v", t)
			}
			return &tupleExpr{list}
		}
		if rules.names {
			list = append(list, p.primary())
		} else {
			list = append(list, p.expression(rules.cond))
		}
		if !p.skip(",") {
			if !many {
				return list[0]
			}
			return &tupleExpr{list}
		}
	}
}

// postfix reads attributes, items and calls.
func (p *parser) postfix(x expr) expr {
	for {
		switch t := p.now(); {
		case t.is("."):
			p.advance()
			if n, ok := p.now().value.(int); ok {
				p.advance()
				x = &itemExpr{x, &constant{n}}
			} else {
				x = &attrExpr{x, p.name()}
			}
		case t.is("["):
			p.advance()
			x = p.subscript(x)
		case t.is("("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
}

// subscript reads what is in brackets after a value.
func (p *parser) subscript(of expr) expr {
	part := func() expr {
		if p.now().is(":") || p.now().is("]") || p.now().is(",") {
			return nil
		}
		return p.expression(true)
	}
	var keys []expr
	for !p.skip("]") {
		if keys != nil {
			p.expect(",")
		}
		from := part()
		if !p.skip(":") {
			if from == nil {
				p.fail("unexpected %v", p.now())
			}
			keys = append(keys, from)
			continue
		}
		s := &sliceExpr{of: of, from: from, to: part()}
		if p.skip(":") {
			s.step = part()
		}
		if p.skip("]") && keys == nil {
			return s
		}
		p.fail("a slice beside other keys")
	}
	if len(keys) == 1 {
		return &itemExpr{of, keys[0]}
	}
	return &itemExpr{of, &tupleExpr{keys}}
}

// arguments reads those of a call, in parentheses.
func (p *parser) arguments() *argExprs {
	a := &argExprs{}
	p.expect("(")
	p.items(")", func() expr {
		switch {
		case p.now().is("*") && a.star == nil && a.keys == nil:
			p.advance()
			a.star = p.expression(true)
		case p.now().is("**") && a.keys == nil:
			p.advance()
			a.keys = p.expression(true)
		case p.now().kind == nameToken && p.look().is("=") && a.keys == nil:
			a.names = append(a.names, p.name())
			p.advance()
			a.named = append(a.named, p.expression(true))
		case a.star != nil || a.keys != nil || a.names != nil:
			p.fail("a plain argument after others")
		default:
			a.args = append(a.args, p.expression(true))
		}
		return nil
	})
	return a
}

// filters reads filters, tests and calls after a value.
func (p *parser) filters(x expr) expr {
	for {
		switch t := p.now(); {
		case t.is("|"):
			p.advance()
			x = p.filter(x)
		case t.is("is"):
			p.advance()
			x = p.test(x)
		case t.is("("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
}

// filter reads a filter's name and arguments.
func (p *parser) filter(of expr) expr {
	f := &filterExpr{of: of, name: p.name(), args: &argExprs{}}
	if filters[f.name] == nil {
		p.unknown = append(p.unknown, fmt.Sprintf("line %d: filter %.40q is not supported", p.now().line, f.name))
	}
	if p.now().is("(") {
		f.args = p.arguments()
	}
	return f
}

func (p *parser) test(of expr) expr {
	negated := p.skip("not")
	t := &testExpr{of: of, name: p.name(), args: &argExprs{}}
	if !isTest(t.name) {
		p.unknown = append(p.unknown, fmt.Sprintf("line %d: test %.40q is not supported", p.now().line, t.name))
	}
	switch n := p.now(); {
	case n.is("("):
		t.args = p.arguments()
	case n.is("is"):
		p.fail("tests cannot be chained")
	case n.is("else") || n.is("or") || n.is("and"):
	case n.kind == nameToken || n.kind == textToken || n.kind == numberToken || n.is("[") || n.is("{"):
		t.args.args = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &notExpr{t}
	}
	return t
}
