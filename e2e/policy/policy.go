package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Policy is a policy with its programs.
type Policy struct {
	admissionv1.ValidatingAdmissionPolicy
	env *cel.Env
}

// Request is what a policy is asked about. Objects are as JSON has them.
type Request struct {
	// User is the name of the user, and Namespace that of the object.
	User, Namespace string
	// Object is what is to be created.
	Object any
}

// Read reads the policy of this name from a file of manifests.
func Read(file, name string) (*Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	env, err := cel.NewEnv(cel.OptionalTypes(), ext.Strings(), ext.Lists(),
		cel.Variable("object", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		return nil, err
	}
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		p := &Policy{env: env}
		switch err := d.Decode(&p.ValidatingAdmissionPolicy); {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s has no policy %s", file, name)
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" && p.Name == name {
			return p, nil
		}
	}
}

// Refusals are what the policy says against a request. None: it permits it. An expression
// that fails is an error.
func (p *Policy) Refusals(r Request) ([]string, error) {
	object, err := asJSON(r.Object)
	if err != nil {
		return nil, err
	}
	variables := map[string]any{}
	scope := map[string]any{
		"object": object, "variables": variables,
		"request": map[string]any{"namespace": r.Namespace, "userInfo": map[string]any{"username": r.User}},
	}
	for _, c := range p.Spec.MatchConditions {
		if v, err := p.eval(c.Expression, scope); err != nil || v != true {
			return nil, errors.Join(err, fmt.Errorf("the request does not match the policy: %s", c.Name))
		}
	}
	for _, v := range p.Spec.Variables {
		if variables[v.Name], err = p.eval(v.Expression, scope); err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.Name, err)
		}
	}
	var out []string
	for _, v := range p.Spec.Validations {
		is, err := p.eval(v.Expression, scope)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Expression, err)
		}
		if is == true {
			continue
		}
		says := v.Message
		if v.MessageExpression != "" {
			if text, err := p.eval(v.MessageExpression, scope); err == nil {
				says = fmt.Sprint(text)
			}
		}
		out = append(out, says)
	}
	return out, nil
}

func (p *Policy) eval(expression string, scope map[string]any) (any, error) {
	ast, issues := p.env.Compile(expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := p.env.Program(ast)
	if err != nil {
		return nil, err
	}
	v, _, err := program.Eval(scope)
	if err != nil {
		return nil, err
	}
	return v.Value(), nil
}

// asJSON is the object as JSON has it, with integers.
func asJSON(o any) (any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	return whole(out)
}

func whole(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return v.Int64()
	case map[string]any:
		for k := range v {
			if v[k], err = whole(v[k]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = whole(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
