package schema

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"
)

// expression is a parsed expression of CEL. Evaluating it gives a value as JSON decodes
// to, or an error, which the API server takes for a rule that is not kept.
type expression interface {
	eval(scope) (any, error)
}

// scope are the names of an expression.
type scope map[string]any

type (
	// literal is a word, a number, true or false.
	literal struct{ value any }
	// name is a variable.
	name string
	// selection is a field of an object.
	selection struct {
		of    expression
		field string
	}
	// has says that an object has a field.
	has struct{ selection }
	// not is the opposite.
	not struct{ of expression }
	// binary is two expressions with an operator between.
	binary struct {
		op          string
		left, right expression
	}
	// choice is a condition with what is true of both its answers.
	choice struct{ condition, yes, no expression }
	// list are the elements of a list.
	list []expression
	// size is the number of elements or characters.
	size struct{ of expression }
	// filter are the elements for which an expression is true.
	filter struct {
		of        expression
		variable  string
		condition expression
	}
)

func (e literal) eval(scope) (any, error) { return e.value, nil }

func (e name) eval(s scope) (any, error) {
	v, ok := s[string(e)]
	if !ok {
		return nil, fmt.Errorf("there is no %s", string(e))
	}
	return v, nil
}

func (e selection) eval(s scope) (any, error) {
	v, ok, err := e.find(s)
	if err == nil && !ok {
		err = fmt.Errorf("there is no field %s", e.field)
	}
	return v, err
}

// find is the value of the field, if it is there.
func (e selection) find(s scope) (any, bool, error) {
	of, err := e.of.eval(s)
	if err != nil {
		return nil, false, err
	}
	m, ok := of.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("%v has no fields", of)
	}
	v, ok := m[e.field]
	return v, ok, nil
}

func (e has) eval(s scope) (any, error) {
	_, ok, err := e.find(s)
	return ok, err
}

func (e not) eval(s scope) (any, error) {
	v, err := truth(e.of, s)
	return !v, err
}

func truth(e expression, s scope) (bool, error) {
	v, err := e.eval(s)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%v is neither true nor false", v)
	}
	return b, nil
}

func (e choice) eval(s scope) (any, error) {
	c, err := truth(e.condition, s)
	if err != nil {
		return nil, err
	}
	if c {
		return e.yes.eval(s)
	}
	return e.no.eval(s)
}

func (e list) eval(s scope) (any, error) {
	out := make([]any, len(e))
	for i := range e {
		v, err := e[i].eval(s)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (e size) eval(s scope) (any, error) {
	v, err := e.of.eval(s)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []any:
		return float64(len(v)), nil
	case map[string]any:
		return float64(len(v)), nil
	case string:
		return float64(len([]rune(v))), nil
	}
	return nil, fmt.Errorf("%v has no size", v)
}

func (e filter) eval(s scope) (any, error) {
	v, err := e.of.eval(s)
	if err != nil {
		return nil, err
	}
	of, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%v is no list", v)
	}
	var out []any
	within := maps.Clone(s)
	for _, v := range of {
		within[e.variable] = v
		keep, err := truth(e.condition, within)
		if err != nil {
			return nil, err
		}
		if keep {
			out = append(out, v)
		}
	}
	return out, nil
}

func (e binary) eval(s scope) (any, error) {
	if e.op == "&&" || e.op == "||" {
		return e.logic(s)
	}
	l, err := e.left.eval(s)
	if err != nil {
		return nil, err
	}
	r, err := e.right.eval(s)
	if err != nil {
		return nil, err
	}
	switch e.op {
	case "==":
		return same(l, r), nil
	case "!=":
		return !same(l, r), nil
	case "in":
		all, ok := r.([]any)
		if !ok {
			return nil, fmt.Errorf("%v is no list", r)
		}
		for _, v := range all {
			if same(l, v) {
				return true, nil
			}
		}
		return false, nil
	}
	a, first := number(l)
	b, second := number(r)
	if !first || !second {
		return nil, fmt.Errorf("%v and %v are not both numbers", l, r)
	}
	switch e.op {
	case "<=":
		return a <= b, nil
	case "<":
		return a < b, nil
	case ">=":
		return a >= b, nil
	}
	return a > b, nil
}

// logic joins two conditions. One that decides alone hides an error of the other, on
// either side, as CEL has it.
func (e binary) logic(s scope) (any, error) {
	decides := e.op == "||"
	l, failed := truth(e.left, s)
	if failed == nil && l == decides {
		return decides, nil
	}
	r, err := truth(e.right, s)
	switch {
	case err == nil && r == decides:
		return decides, nil
	case failed != nil || err != nil:
		return nil, errors.Join(failed, err)
	}
	return !decides, nil
}

// same says that two words, numbers or truths are equal.
func same(a, b any) bool {
	x, first := number(a)
	y, second := number(b)
	if first && second {
		return x == y
	}
	switch a.(type) {
	case string, bool, nil:
		return a == b
	}
	return false
}

// parse reads an expression, or says what of it the package does not know.
func parse(text string) (expression, error) {
	words, err := split(text)
	if err != nil {
		return nil, err
	}
	p := &parser{words: words}
	e := p.choice()
	if p.err == nil && len(p.words) > 0 {
		p.err = fmt.Errorf("%q is not known here", p.words[0])
	}
	return e, p.err
}

// split makes words of a text: names, numbers, operators, and literals with their
// quotation marks.
func split(text string) ([]string, error) {
	var words []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		n := 1
		switch c := rune(text[0]); {
		case c == '\'' || c == '"':
			end := strings.IndexRune(text[1:], c)
			if end < 0 || strings.Contains(text[:end+2], `\`) {
				return nil, fmt.Errorf("the word at %s is not known", text)
			}
			n = end + 2
		case c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
			n = len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }))
		default:
			for _, op := range []string{"&&", "||", "==", "!=", "<=", ">="} {
				if strings.HasPrefix(text, op) {
					n = len(op)
				}
			}
		}
		words = append(words, text[:n])
		text = text[n:]
	}
	return words, nil
}

// parser reads words. After an error it goes on and changes nothing.
type parser struct {
	words []string
	err   error
}

// next takes the next word if it is one of these.
func (p *parser) next(any ...string) (string, bool) {
	for _, w := range any {
		if p.err == nil && len(p.words) > 0 && p.words[0] == w {
			p.words = p.words[1:]
			return w, true
		}
	}
	return "", false
}

func (p *parser) must(w string) {
	if _, ok := p.next(w); !ok && p.err == nil {
		p.err = fmt.Errorf("%s is missing before %q", w, strings.Join(p.words, " "))
	}
}

func (p *parser) choice() expression {
	e := p.operators([]string{"||"}, func() expression {
		return p.operators([]string{"&&"}, func() expression {
			return p.operators([]string{"==", "!=", "<=", "<", ">=", ">", "in"}, p.unary)
		})
	})
	if _, ok := p.next("?"); !ok {
		return e
	}
	yes := p.choice()
	p.must(":")
	return choice{e, yes, p.choice()}
}

// operators reads what is between operators of one rank.
func (p *parser) operators(ops []string, operand func() expression) expression {
	e := operand()
	for {
		op, ok := p.next(ops...)
		if !ok {
			return e
		}
		e = binary{op, e, operand()}
	}
}

func (p *parser) unary() expression {
	if _, ok := p.next("!"); ok {
		return not{p.unary()}
	}
	e := p.primary()
	for {
		if _, ok := p.next("."); !ok {
			return e
		}
		e = p.member(e)
	}
}

// member reads what follows a dot.
func (p *parser) member(of expression) expression {
	word := p.word()
	if word == "" || word[0] != '_' && !unicode.IsLetter(rune(word[0])) {
		p.fail("the field " + word)
		return nil
	}
	if _, call := p.next("("); !call {
		return selection{of, word}
	}
	switch word {
	case "size":
		p.must(")")
		return size{of}
	case "filter":
		variable := p.word()
		p.must(",")
		condition := p.choice()
		p.must(")")
		return filter{of, variable, condition}
	}
	p.fail("the function " + word)
	return nil
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = errors.New(what + " is not known")
	}
}

// word takes the next word, whatever it is.
func (p *parser) word() string {
	if p.err != nil || len(p.words) == 0 {
		p.fail("the end")
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *parser) primary() expression {
	switch w := p.word(); {
	case w == "":
		return nil
	case w == "(":
		e := p.choice()
		p.must(")")
		return e
	case w == "[":
		return p.list()
	case w == "true" || w == "false":
		return literal{w == "true"}
	case w == "dyn":
		// No expression has a type here.
		p.must("(")
		e := p.choice()
		p.must(")")
		return e
	case w == "has":
		p.must("(")
		s, ok := p.unary().(selection)
		p.must(")")
		if !ok {
			p.fail("has of what is no field")
		}
		return has{s}
	case w[0] == '\'' || w[0] == '"':
		return literal{w[1 : len(w)-1]}
	case unicode.IsDigit(rune(w[0])):
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			p.fail("the number " + w)
		}
		return literal{float64(n)}
	case w[0] == '_' || unicode.IsLetter(rune(w[0])):
		return name(w)
	default:
		p.fail(strconv.Quote(w))
		return nil
	}
}

func (p *parser) list() expression {
	var l list
	for {
		if _, end := p.next("]"); end || p.err != nil {
			return l
		}
		if len(l) > 0 {
			p.must(",")
		}
		l = append(l, p.choice())
	}
}
