package task

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"

	"antiphase/eval"
)

// evaluate is the value of an expression with letters as variables: numbers, + - * / ^, parentheses, sqrt, pi and
// implicit products. Two expressions that agree at several random points count as equal.
func evaluate(text string, vars map[rune]float64) (float64, error) {
	e := &expression{in: []rune(strings.ReplaceAll(text, " ", "")), vars: vars}
	v, err := e.sum()
	if err == nil && e.at < len(e.in) {
		err = errNoExpression
	}
	if err == nil && !eval.Finite(v) {
		err = errNoExpression
	}
	return v, err
}

var errNoExpression = errors.New("no expression")

// expression reads by recursive descent: sum → product → sign → power → atom.
type expression struct {
	in    []rune
	at    int
	depth int
	vars  map[rune]float64
}

func (e *expression) peek() rune {
	if e.at < len(e.in) {
		return e.in[e.at]
	}
	return 0
}

func (e *expression) take(r rune) bool {
	if e.peek() == r {
		e.at++
		return true
	}
	return false
}

func (e *expression) sum() (float64, error) {
	if e.depth++; e.depth > 100 { // no answer is nested this deeply
		return 0, errNoExpression
	}
	defer func() { e.depth-- }()
	v, err := e.product()
	for err == nil {
		var w float64
		switch {
		case e.take('+'):
			w, err = e.product()
			v += w
		case e.take('-'):
			w, err = e.product()
			v -= w
		default:
			return v, nil
		}
	}
	return v, err
}

func (e *expression) product() (float64, error) {
	v, err := e.sign()
	for err == nil {
		var w float64
		switch r := e.peek(); {
		case e.take('*'):
			w, err = e.sign()
			v *= w
		case e.take('/'):
			w, err = e.sign()
			v /= w
		case r == '(' || unicode.IsLetter(r) || unicode.IsDigit(r): // side by side
			w, err = e.power()
			v *= w
		default:
			return v, nil
		}
	}
	return v, err
}

func (e *expression) sign() (float64, error) {
	minus := false
	for e.peek() == '-' || e.peek() == '+' {
		minus = minus != (e.peek() == '-')
		e.at++
	}
	v, err := e.power()
	if minus {
		v = -v
	}
	return v, err
}

func (e *expression) power() (float64, error) {
	v, err := e.atom()
	if err == nil && e.take('^') {
		if e.depth++; e.depth > 100 {
			return 0, errNoExpression
		}
		defer func() { e.depth-- }()
		var w float64
		w, err = e.sign() // a power of a power binds to the right
		v = math.Pow(v, w)
	}
	return v, err
}

func (e *expression) atom() (float64, error) {
	r := e.peek()
	switch {
	case e.take('('):
		v, err := e.sum()
		if err == nil && !e.take(')') {
			err = errNoExpression
		}
		return v, err
	case unicode.IsDigit(r) || r == '.':
		from := e.at
		for unicode.IsDigit(e.peek()) || e.peek() == '.' {
			e.at++
		}
		return strconv.ParseFloat(string(e.in[from:e.at]), 64)
	case e.word("sqrt"):
		v, err := e.atom()
		return math.Sqrt(v), err
	case e.word("pi"):
		return math.Pi, nil
	case unicode.IsLetter(r):
		e.at++
		if v, ok := e.vars[r]; ok {
			return v, nil
		}
	}
	return 0, errNoExpression
}

func (e *expression) word(w string) bool {
	if strings.HasPrefix(string(e.in[e.at:min(e.at+len(w), len(e.in))]), w) {
		e.at += len(w)
		return true
	}
	return false
}
