package chat

import (
	"errors"
	"fmt"

	"github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// chatStatements are gonja's statements that neither load anything nor escape the limits, plus our own set and
// generation.
func chatStatements() *exec.ControlStructureSet {
	set := map[string]parser.ControlStructureParser{"set": parseSet, "generation": parseGeneration}
	for _, name := range []string{"if", "for", "macro", "raw", "break", "continue"} {
		set[name], _ = controlStructures.All.Get(name)
	}
	return exec.NewControlStructureSet(set)
}

// setBlock is {% set x = value %}, also with an inline if, and {% set x %}…{% endset %}. Besides names only attributes
// of a namespace can be set, as in Jinja.
type setBlock struct {
	at               *tokens.Token
	name, attribute  string // of name.attribute; attribute is empty for a plain name
	value, when, alt nodes.Expression
	body             *nodes.Wrapper
}

// Position implements nodes.Node.
func (s *setBlock) Position() *tokens.Token { return s.at }

// String implements nodes.Node.
func (s *setBlock) String() string { return "set " + s.name }

func parseSet(p, args *parser.Parser) (nodes.ControlStructure, error) {
	s := &setBlock{at: p.Current()}
	target, err := args.ParseVariableOrLiteral()
	if err != nil {
		return nil, err
	}
	switch t := target.(type) {
	case *nodes.Name:
		s.name = t.Name.Val
	case *nodes.GetAttribute:
		ns, ok := t.Node.(*nodes.Name)
		if !ok {
			return nil, errors.New("set: the target must be a name or a namespace's attribute")
		}
		s.name, s.attribute = ns.Name.Val, t.Attribute
	default:
		return nil, errors.New("set: the target must be a name or a namespace's attribute")
	}
	if args.Match(tokens.Assign) == nil {
		s.body, _, err = p.WrapUntil("endset")
		return s, err
	}
	if s.value, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if s.when, s.alt, err = args.ParseCondition(); err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, args.Error("set: unexpected text after the value", args.Current())
	}
	return s, nil
}

// Execute implements exec.ControlStructure.
func (s *setBlock) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	v := s.result(r)
	if v.IsError() {
		return v
	}
	if s.attribute == "" {
		r.Environment.Context.Set(s.name, v.Interface())
		return nil
	}
	target, _ := r.Environment.Context.Get(s.name)
	if held, ok := target.(*exec.Value); ok {
		target = held.Interface()
	}
	ns, ok := target.(map[string]any)
	if !ok {
		return fmt.Errorf("set: %s is not a namespace", s.name)
	}
	left := maxValue
	if err := measure(v.Interface(), 1, &left); err != nil { // one level down: a namespace must not contain a namespace
		return budgetOf(r.Evaluator()).fail("set %s.%s: %w", s.name, s.attribute, err)
	}
	ns[s.attribute] = v.Interface()
	return nil
}

// result evaluates the value to set.
func (s *setBlock) result(r *exec.Renderer) *exec.Value {
	if s.body != nil {
		sub := r.Inherit()
		out := &boundedText{left: maxValue}
		sub.Output = out
		if err := sub.ExecuteWrapper(s.body); err != nil {
			return exec.AsValue(err)
		}
		return budgetOf(r.Evaluator()).made(exec.AsSafeValue(out.String()))
	}
	if s.when == nil {
		return r.Eval(s.value)
	}
	switch c := r.Eval(s.when); {
	case c.IsError():
		return c
	case c.IsTrue():
		return r.Eval(s.value)
	case s.alt == nil:
		return exec.AsValue(nil)
	}
	return r.Eval(s.alt)
}

// plainBlock is {% generation %}…{% endgeneration %}, which marks the assistant's text for training; it prints its
// body.
type plainBlock struct {
	at   *tokens.Token
	body *nodes.Wrapper
}

// Position implements nodes.Node.
func (s *plainBlock) Position() *tokens.Token { return s.at }

// String implements nodes.Node.
func (s *plainBlock) String() string { return "generation" }

func parseGeneration(p, _ *parser.Parser) (nodes.ControlStructure, error) {
	s := &plainBlock{at: p.Current()}
	var err error
	s.body, _, err = p.WrapUntil("endgeneration")
	return s, err
}

// Execute implements exec.ControlStructure.
func (s *plainBlock) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	return r.ExecuteIfWrapper(s.body)
}

// macroBlock defines a macro whose calls are counted, because a stack overflow cannot be recovered from.
type macroBlock struct {
	*controlStructures.MacroControlStructure
}

// Execute implements exec.ControlStructure.
func (m *macroBlock) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	f, err := exec.MacroNodeToFunc(m.Macro, r)
	if err != nil {
		return err
	}
	b := budgetOf(r.Evaluator())
	r.Environment.Context.Set(m.Name, exec.Macro(func(args *exec.VarArgs) *exec.Value {
		if over := b.charge(0); over != nil {
			return over
		}
		if b.depth >= maxMacroDepth {
			return b.fail("calls macros deeper than %d", maxMacroDepth)
		}
		b.depth++
		defer func() { b.depth-- }()
		return f(args)
	}))
	return nil
}
