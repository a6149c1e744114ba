package chat

import (
	"math"
	"math/big"
	"strings"
)

// arithmetic is Python's: texts, lists and tuples concatenate and repeat, a text before % is a format, numbers compute.
func (r *run) arithmetic(op string, x, y any) any {
	r.take(0)
	format, isFormat := isText(x)
	if isFormat && op == "%" {
		r.checkTime() // it may be long
		return r.made(percent(r, format, y))
	}
	for _, v := range []any{x, y} {
		if u, ok := v.(*undefined); ok {
			u.fail()
		}
	}
	a, isInt1 := isInt(x)
	b, isInt2 := isInt(y)
	if isInt1 && isInt2 && op != "/" {
		return integers(op, a, b)
	}
	f, isNumber1 := isNumber(x)
	g, isNumber2 := isNumber(y)
	if isNumber1 && isNumber2 {
		return floats(op, f, g)
	}
	var out any
	switch {
	case op == "+":
		out = r.joinedTo(x, y)
	case op == "*" && isInt2:
		out = r.repeated(x, b)
	case op == "*" && isInt1:
		out = r.repeated(y, a)
	}
	if out == nil {
		fail("operator %s does not go with %s and %s", op, kindOf(x), kindOf(y))
	}
	return out
}

// joinedTo is one text, list or tuple after another; nil for others.
func (r *run) joinedTo(x, y any) any {
	if a, ok := isText(x); ok {
		b, ok := isText(y)
		if !ok {
			return nil
		}
		_, escaped := x.(markup)
		_, other := y.(markup)
		r.take(len(a) + len(b))
		if escaped || other {
			return escapeHTML(x) + escapeHTML(y)
		}
		return a + b
	}
	a, isTuple, ok1 := seqItems(x)
	b, other, ok2 := seqItems(y)
	switch {
	case !ok1 || !ok2 || isTuple != other:
		return nil
	case isTuple:
		return r.made(append(append(tuple{}, a...), b...))
	}
	return r.made(append(append(list{}, a...), b...))
}

// repeated is a text, a list or a tuple n times; nil for others.
func (r *run) repeated(v any, n int) any {
	n = max(n, 0)
	of, isTuple, ok := seqItems(v)
	size := len(of) * 8
	s, isString := isText(v)
	if isString {
		size = len(s)
	}
	if (ok || isString) && size > 0 && n > maxValue/size {
		fail("%w", errLarge)
	}
	switch {
	case isString:
		r.take(n * size)
		return strings.Repeat(s, n)
	case !ok:
		return nil
	}
	out := make([]any, 0, n*len(of))
	for range n {
		if len(of) > 0 {
			out = append(out, of...)
		}
	}
	if isTuple {
		return r.made(tuple(out))
	}
	return r.made(list(out))
}

// integers computes with integers of 64 bits. Python's have no bounds: what does not fit is an error.
func integers(op string, x, y int) any {
	a, b := big.NewInt(int64(x)), big.NewInt(int64(y))
	switch op {
	case "+":
		a.Add(a, b)
	case "-":
		a.Sub(a, b)
	case "*":
		a.Mul(a, b)
	case "//", "%":
		if y == 0 {
			fail("division by zero")
		}
		if x == math.MinInt && y == -1 && op == "//" {
			fail("%d // %d has more than 63 bits", x, y)
		}
		q, r := x/y, x%y
		if r != 0 && (r < 0) != (y < 0) { // Python rounds down
			q, r = q-1, r+y
		}
		if op == "%" {
			return r
		}
		return q
	case "**":
		if y < 0 {
			return floats(op, float64(x), float64(y))
		}
		if y > 64 && (x < -1 || x > 1) {
			fail("%d ** %d has more than 63 bits", x, y)
		}
		if y > 64 {
			b.SetInt64(int64(64 + y%2))
		}
		a.Exp(a, b, nil)
	}
	if !a.IsInt64() {
		fail("%d %s %d has more than 63 bits", x, op, y)
	}
	return int(a.Int64())
}

func floats(op string, x, y float64) any {
	if y == 0 && (op == "/" || op == "//" || op == "%") {
		fail("division by zero")
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		q, _ := divmod(x, y)
		return q
	case "%":
		_, rest := divmod(x, y)
		return rest
	}
	z := math.Pow(x, y)
	switch {
	case x == 0 && y < 0:
		fail("zero cannot be raised to a negative power")
	case math.IsNaN(z) && !math.IsNaN(x) && !math.IsNaN(y) || math.IsInf(z, 0) && !math.IsInf(x, 0) &&
		!math.IsInf(y, 0):
		fail("%v ** %v is not a number", x, y)
	}
	return z
}

// divmod is Python's: the remainder has the sign of the divisor.
func divmod(x, y float64) (quotient, rest float64) {
	rest = math.Mod(x, y)
	q := (x - rest) / y
	switch {
	case rest == 0:
		rest = math.Copysign(0, y)
	case (y < 0) != (rest < 0):
		rest += y
		q--
	}
	if q == 0 {
		return math.Copysign(0, x/y), rest
	}
	quotient = math.Floor(q)
	if q-quotient > 0.5 {
		quotient++
	}
	return quotient, rest
}

var forHTML = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// escapeHTML is a value's text for HTML; markup stays as it is.
func escapeHTML(v any) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	return markup(forHTML.Replace(str(v)))
}
