package chat

import (
	"strings"

	"github.com/nikolalohinski/gonja/v2/tokens"
)

// gonja supports "a if c else b" only at the top level of {{ }} and of set. Before parsing, inlineIfs rewrites every
// other one as
//
//	((c) and [a] or [b])[0]
//
// which evaluates the same operands in the same order: a list of one element is always true.
func inlineIfs(source string, all []*tokens.Token) string {
	r := &rewriter{source: source, all: all}
	var out strings.Builder
	copied := 0
	for i := 0; i < len(all); i++ {
		end := tokens.VariableEnd
		switch all[i].Type {
		case tokens.VariableBegin:
		case tokens.BlockBegin:
			end = tokens.BlockEnd
		default:
			continue
		}
		j := i + 1
		for j < len(all) && all[j].Type != end {
			j++
		}
		if j == len(all) || !r.hasIf(i+1, j) {
			continue
		}
		out.WriteString(source[copied:all[i+1].Pos])
		out.WriteString(r.tag(all[i].Type, i+1, j))
		copied = all[j].Pos
		i = j
	}
	return out.String() + source[copied:]
}

// rewriter writes token ranges [lo, hi) as text.
type rewriter struct {
	source string
	all    []*tokens.Token
}

func (r *rewriter) hasIf(lo, hi int) bool {
	for _, t := range r.all[lo:hi] {
		if t.Type == tokens.Name && t.Val == "if" {
			return true
		}
	}
	return false
}

// text is a token with the space after it.
func (r *rewriter) text(i int) string { return r.source[r.all[i].Pos:r.all[i+1].Pos] }

// tag writes the contents of a tag. The statement's keyword and a loop's own condition are unchanged.
func (r *rewriter) tag(kind tokens.Type, lo, hi int) string {
	if kind == tokens.VariableBegin {
		return r.list(lo, hi)
	}
	word := r.text(lo)
	if r.all[lo].Val == "for" {
		if at := r.find("if", lo+1, hi); at < hi {
			return word + r.list(lo+1, at) + r.text(at) + r.list(at+1, hi)
		}
	}
	return word + r.list(lo+1, hi)
}

// find is the first occurrence of name outside brackets, or hi.
func (r *rewriter) find(name string, lo, hi int) int {
	depth := 0
	for i := lo; i < hi; i++ {
		switch t := r.all[i]; t.Type {
		case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
			depth++
		case tokens.RightParenthesis, tokens.RightBracket, tokens.RightBrace:
			depth--
		case tokens.Name:
			if depth == 0 && t.Val == name {
				return i
			}
		}
	}
	return hi
}

// list writes expressions separated by commas, colons and assignments.
func (r *rewriter) list(lo, hi int) string {
	var out strings.Builder
	depth, begin := 0, lo
	for i := lo; i < hi; i++ {
		switch r.all[i].Type {
		case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
			depth++
		case tokens.RightParenthesis, tokens.RightBracket, tokens.RightBrace:
			depth--
		case tokens.Comma, tokens.Colon, tokens.Assign:
			if depth == 0 {
				out.WriteString(r.one(begin, i) + r.text(i))
				begin = i + 1
			}
		}
	}
	return out.String() + r.one(begin, hi)
}

// one writes one expression.
func (r *rewriter) one(lo, hi int) string {
	at := r.find("if", lo, hi)
	if at == hi {
		return r.groups(lo, hi)
	}
	other := r.find("else", at+1, hi)
	b := "''"
	if other < hi {
		b = r.one(other+1, hi)
	}
	return "((" + r.groups(at+1, other) + ") and [" + r.groups(lo, at) + "] or [" + b + "])[0] "
}

// groups copies tokens and rewrites what is inside brackets.
func (r *rewriter) groups(lo, hi int) string {
	var out strings.Builder
	for i := lo; i < hi; i++ {
		out.WriteString(r.text(i))
		switch r.all[i].Type {
		case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
			end, depth := i+1, 1
			for ; end < hi; end++ {
				switch r.all[end].Type {
				case tokens.LeftParenthesis, tokens.LeftBracket, tokens.LeftBrace:
					depth++
				case tokens.RightParenthesis, tokens.RightBracket, tokens.RightBrace:
					depth--
				}
				if depth == 0 {
					break
				}
			}
			out.WriteString(r.list(i+1, end))
			i = end - 1
		}
	}
	return out.String()
}
