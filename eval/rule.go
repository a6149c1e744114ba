package eval

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Rule says which values a setting may have; of a list, each entry. The zero Rule accepts every value of the type.
type Rule struct {
	want string // follows "must be"; empty: the error of bad says it
	bad  func(v any) error
}

// AtLeast accepts numbers of x or more.
func AtLeast(x float64) Rule {
	return number(fmt.Sprintf("%g or more", x), func(v float64) bool { return v >= x })
}

// Between accepts numbers from a to b, both included.
func Between(a, b float64) Rule {
	return number(fmt.Sprintf("%g to %g", a, b), func(v float64) bool { return v >= a && v <= b })
}

// OrZero accepts 0 as well, which stands for a default.
func (r Rule) OrZero() Rule {
	return number("0 or "+r.want, func(v float64) bool { return v == 0 || r.bad(v) == nil })
}

// number accepts numbers of either type by a condition.
func number(want string, ok func(v float64) bool) Rule {
	return Rule{want: want, bad: func(v any) error {
		x, isFloat := v.(float64)
		if n, isInt := v.(int); isInt {
			x = float64(n)
		} else if !isFloat {
			// Rules stand beside the default they belong to.
			panic(fmt.Sprintf("eval: a rule for numbers was given %T", v))
		}
		if !ok(x) {
			return fmt.Errorf("must be %s", want)
		}
		return nil
	}}
}

// OneOf accepts the given words.
func OneOf(words ...string) Rule {
	want := strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
	return Rule{want: want, bad: func(v any) error {
		if !slices.Contains(words, v.(string)) {
			return fmt.Errorf("must be %s", want)
		}
		return nil
	}}
}

// Parsed accepts texts that a parser accepts.
func Parsed(parse func(text string) error) Rule {
	return Rule{bad: func(v any) error { return parse(v.(string)) }}
}

// check applies the rule to a value of the setting key.
func (r Rule) check(key string, v any) error {
	if r.bad == nil {
		return nil
	}
	list := reflect.ValueOf(v)
	if list.Kind() != reflect.Slice {
		if err := r.bad(v); err != nil {
			return fmt.Errorf("%s is %s, %w", key, shown(v), err)
		}
		return nil
	}
	for i := range list.Len() {
		x := list.Index(i).Interface()
		if err := r.bad(x); err != nil {
			return fmt.Errorf("%s has %s, %w", key, shown(x), err)
		}
	}
	return nil
}

// shown is a value in an error: texts are quoted.
func shown(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}
