package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// gonja has no limits of its own, so a parsed template is rewritten before it runs. Values are guarded where they are
// created (literals, calls, filters, arithmetic), loops where they begin and at each iteration, macros where they are
// called. Each guard is a filter with a name that no template can spell.
const (
	guardFilter   = "\x00guard"   // charges and measures a value
	iterFilter    = "\x00iter"    // the same, and bounds the number of its items
	itemFilter    = "\x00item"    // a value of which an item is taken
	opFilter      = "\x00op"      // arithmetic that measures first; its first argument is the operator
	callFilter    = "\x00call"    // a method; its first argument is the name
	printFilter   = "\x00print"   // a value about to be printed
	truthFilter   = "\x00truth"   // a condition
	presentFilter = "\x00present" // a variable that is asked to be defined; its argument is its name
	partFilter    = "\x00part"    // a value whose item or attribute, the argument, is asked to be defined
)

var known = chatFilters()

// lex splits a template into tokens, with bounds on what the parser will recurse into.
func lex(source string, cfg *config.Config) (list []*tokens.Token, err error) {
	if err := checkNumbers(source, cfg); err != nil {
		return nil, err
	}
	n := 0
	stream := tokens.LexAll(source, cfg)
	for !stream.End() {
		t := stream.Next()
		list = append(list, t)
		switch t.Type {
		case tokens.Error:
			return nil, fmt.Errorf("line %d: %s", t.Line, t.Val)
		case tokens.Data, tokens.BlockBegin, tokens.VariableBegin:
			n = 0
		default:
			if n++; n > maxTagTokens {
				return nil, fmt.Errorf("line %d: a tag of more than %d tokens", t.Line, maxTagTokens)
			}
		}
	}
	return list, checkChains(list)
}

// checkChains refuses a < b < c, of which gonja compares the result of a < b with c.
func checkChains(list []*tokens.Token) error {
	compared := []bool{false} // in each open bracket, since the last word or comma that ends a comparison
	for _, t := range list {
		last := len(compared) - 1
		switch t.Type {
		case tokens.VariableBegin, tokens.BlockBegin:
			compared = []bool{false}
		case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
			compared = append(compared, false)
		case tokens.RightParenthesis, tokens.RightBracket, tokens.RightBrace:
			compared = compared[:max(last, 1)]
		case tokens.And, tokens.Or, tokens.Comma, tokens.Colon, tokens.Assign:
			compared[last] = false
		case tokens.Name:
			compared[last] = compared[last] && t.Val != "if" && t.Val != "else"
		case tokens.Equals, tokens.Ne, tokens.LowerThan, tokens.LowerThanOrEqual, tokens.GreaterThan, tokens.GreaterThanOrEqual:
			if compared[last] {
				return fmt.Errorf("line %d: a chain of comparisons is not supported; write a < b and b < c", t.Line)
			}
			compared[last] = true
		}
	}
	return nil
}

// checkNumbers refuses a number, a dot and a rune of several bytes, as in {{ 2.é }}: gonja's lexer steps back over the dot by
// the width of the rune and never ends. It is found among the tokens of the masked source, which has no such runes.
func checkNumbers(source string, cfg *config.Config) error {
	for stream := tokens.LexAll(mask(source), cfg); !stream.End(); {
		t := stream.Next()
		end := t.Pos + len(t.Val)
		if (t.Type == tokens.Integer || t.Type == tokens.Float) && end+1 < len(source) && source[end] == '.' && source[end+1] >= utf8.RuneSelf {
			r, _ := utf8.DecodeRuneInString(source[end+1:])
			return fmt.Errorf("line %d: a number, a dot and %q", t.Line, r)
		}
	}
	return nil
}

// mask replaces every rune of several bytes, and every byte that is not UTF-8, by as many ASCII letters, or digits if it is one.
func mask(source string) string {
	out := []byte(source)
	for i := 0; i < len(out); {
		r, n := utf8.DecodeRuneInString(source[i:])
		if r >= utf8.RuneSelf {
			c := byte('x')
			if unicode.IsDigit(r) {
				c = '0'
			}
			for k := range n {
				out[i+k] = c
			}
		}
		i += n
	}
	return string(out)
}

// guardNodes rewrites the elements of a template or of a block's body.
func guardNodes(list []nodes.Node, depth int) error {
	if depth > maxBlocks {
		return fmt.Errorf("more than %d blocks inside each other", maxBlocks)
	}
	for _, n := range list {
		switch n := n.(type) {
		case *nodes.Data, *nodes.Comment:
		case *nodes.Output:
			if err := errors.Join(guardAll(&n.Expression, &n.Alternative), condition(&n.Condition)); err != nil {
				return err
			}
			n.Expression = &nodes.FilteredExpression{Expression: n.Expression,
				Filters: []*nodes.FilterCall{call(n.Start, guardFilter), call(n.Start, printFilter)}}
		case *nodes.ControlStructureBlock:
			if err := guardBlock(n, depth); err != nil {
				return err
			}
		default:
			return fmt.Errorf("line %d: %T is not supported", n.Position().Line, n)
		}
	}
	return nil
}

// guardBlock rewrites one statement.
func guardBlock(n *nodes.ControlStructureBlock, depth int) error {
	body := func(w *nodes.Wrapper) error {
		if w == nil {
			return nil
		}
		return guardNodes(w.Nodes, depth+1)
	}
	switch s := n.ControlStructure.(type) {
	case *controlStructures.ForControlStructure:
		if s.Recursive {
			return fmt.Errorf("line %d: a recursive loop is not supported", n.Location.Line)
		}
		if err := errors.Join(guardAll(&s.ObjectEvaluator), condition(&s.IfCondition), body(s.BodyWrapper), body(s.EmptyWrapper)); err != nil {
			return err
		}
		s.ObjectEvaluator = filtered(n.Location, s.ObjectEvaluator, iterFilter)
		tick := &nodes.Output{Start: n.Location, End: n.Location, Expression: filtered(n.Location, &nodes.String{Location: n.Location}, guardFilter)}
		s.BodyWrapper.Nodes = append([]nodes.Node{tick}, s.BodyWrapper.Nodes...)
		return nil
	case *controlStructures.IfControlStructure:
		for i := range s.Conditions {
			if err := condition(&s.Conditions[i]); err != nil {
				return err
			}
		}
		for _, w := range s.Wrappers {
			if err := body(w); err != nil {
				return err
			}
		}
		return nil
	case *controlStructures.MacroControlStructure:
		for _, p := range s.Kwargs {
			if _, missing := p.Value.(*nodes.Error); missing { // no default: a call without this argument fails
				continue
			}
			if err := guardAll(&p.Value); err != nil {
				return err
			}
		}
		n.ControlStructure = &macroBlock{s}
		return body(s.Wrapper)
	case *setBlock:
		return errors.Join(guardAll(&s.value, &s.alt), condition(&s.when), body(s.body))
	case *plainBlock:
		return body(s.body)
	case *controlStructures.RawControlStructure, *controlStructures.BreakControlStructure, *controlStructures.ContinueControlStructure:
		return nil
	}
	return fmt.Errorf("line %d: statement %s is not supported", n.Location.Line, strconv.Quote(n.Name))
}

func call(at *tokens.Token, name string, args ...nodes.Expression) *nodes.FilterCall {
	return &nodes.FilterCall{Token: at, Name: name, Args: args, Kwargs: map[string]nodes.Expression{}}
}

func filtered(at *tokens.Token, e nodes.Expression, name string, args ...nodes.Expression) nodes.Expression {
	return &nodes.FilteredExpression{Expression: e, Filters: []*nodes.FilterCall{call(at, name, args...)}}
}

// guardAll rewrites all expressions that are not nil.
func guardAll(list ...*nodes.Expression) error {
	for _, e := range list {
		if *e == nil {
			continue
		}
		if err := guard(e); err != nil {
			return err
		}
	}
	return nil
}

func guardList(list []nodes.Expression) error {
	for i := range list {
		if err := guard(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func guardMap(m map[string]nodes.Expression) error {
	for k, e := range m {
		if err := guard(&e); err != nil {
			return err
		}
		m[k] = e
	}
	return nil
}

// guard rewrites one expression in place. Its depth is bounded by the tokens of its tag.
func guard(e *nodes.Expression) error {
	at := (*e).Position()
	made := func(err error) error { // a value is created here
		*e = filtered(at, *e, guardFilter)
		return err
	}
	switch n := (*e).(type) {
	case *nodes.None, *nodes.Bool, *nodes.Integer, *nodes.Float, *nodes.String, *nodes.Name:
		return nil
	case *nodes.List:
		return made(guardList(n.Val))
	case *nodes.Tuple:
		return made(guardList(n.Val))
	case *nodes.Dict:
		for _, p := range n.Pairs {
			if err := guardAll(&p.Key, &p.Value); err != nil {
				return err
			}
		}
		return made(nil)
	case *nodes.Call:
		return made(guardCall(e, n))
	case *nodes.GetItem:
		err := guardParts(&n.Node, &n.Arg)
		n.Node = filtered(at, n.Node, itemFilter)
		return err
	case *nodes.GetSlice:
		return made(guardParts(&n.Node, &n.Start, &n.End, &n.Step))
	case *nodes.GetAttribute:
		return guardParts(&n.Node)
	case *nodes.Negation:
		return condition(&n.Term)
	case *nodes.UnaryExpression:
		return guardAll(&n.Term)
	case *nodes.BinaryExpression:
		return guardBinary(e, n)
	case *nodes.TestExpression:
		return guardTest(n)
	case *nodes.FilteredExpression:
		if err := guardAll(&n.Expression); err != nil {
			return err
		}
		for _, f := range n.Filters {
			if known[f.Name] == nil {
				return fmt.Errorf("line %d: filter %.40q is not supported", f.Token.Line, f.Name)
			}
			if err := errors.Join(guardList(f.Args), guardMap(f.Kwargs)); err != nil {
				return err
			}
		}
		return made(nil)
	}
	return fmt.Errorf("line %d: expression %T is not supported", at.Line, *e)
}

// guardParts is guardAll for expressions that gonja declares as nodes.
func guardParts(list ...*nodes.Node) error {
	for _, n := range list {
		e := nodes.Expression(*n)
		if err := guardAll(&e); err != nil {
			return err
		}
		*n = e
	}
	return nil
}

// byPlace lists named arguments in the order in which they are written.
func byPlace(m map[string]nodes.Expression) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return m[a].Position().Pos - m[b].Position().Pos })
}

// guardCall rewrites calls. A method call becomes a filter of the value before the dot; other calls must be of a plain
// name.
func guardCall(e *nodes.Expression, n *nodes.Call) error {
	order := byPlace(n.Kwargs)
	if err := errors.Join(guardList(n.Args), guardMap(n.Kwargs)); err != nil {
		return err
	}
	switch f := n.Func.(type) {
	case *nodes.Name:
		if f.Name.Val == "dict" && len(n.Args) == 0 {
			d := &nodes.Dict{Token: n.Location}
			for _, k := range order {
				d.Pairs = append(d.Pairs, &nodes.Pair{Key: &nodes.String{Location: n.Location, Val: k}, Value: n.Kwargs[k]})
			}
			*e = d
		}
		return nil
	case *nodes.GetAttribute:
		self := nodes.Expression(f.Node)
		if err := guard(&self); err != nil {
			return err
		}
		c := call(n.Location, callFilter, append([]nodes.Expression{&nodes.String{Location: n.Location, Val: f.Attribute}}, n.Args...)...)
		c.Kwargs = n.Kwargs
		*e = &nodes.FilteredExpression{Expression: self, Filters: []*nodes.FilterCall{c}}
		return nil
	}
	return fmt.Errorf("line %d: only names and methods can be called", n.Location.Line)
}

// guardBinary rewrites arithmetic and comparisons; logic is unchanged but for the truth of its left side.
func guardBinary(e *nodes.Expression, n *nodes.BinaryExpression) error {
	op := n.Operator.Token
	left := guard
	if op.Type == tokens.And || op.Type == tokens.Or {
		left = condition
	}
	if err := errors.Join(left(&n.Left), guard(&n.Right)); err != nil {
		return err
	}
	switch op.Type {
	case tokens.Addition, tokens.Subtraction, tokens.Multiply, tokens.Division, tokens.FloorDivision, tokens.Modulo, tokens.Power, tokens.Tilde,
		tokens.Equals, tokens.Ne, tokens.LowerThan, tokens.LowerThanOrEqual, tokens.GreaterThan, tokens.GreaterThanOrEqual:
		*e = filtered(op, n.Left, opFilter, &nodes.String{Location: op, Val: op.Val}, n.Right)
	}
	return nil
}
