package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
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
	// Object is what is to be created, or what Old is to become.
	Object, Old any
	// Resource is the plural of the kind.
	Resource string
	// Node is the one that the user's token names. Empty: none.
	Node string
	// Permitted says that the user has all permissions that the policy asks for.
	Permitted bool
}

// Read reads the policy of this name from a file of manifests.
func Read(file, name string) (*Policy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{cel.OptionalTypes(), ext.Strings(), ext.Lists()}
	for _, name := range []string{"object", "oldObject", "request", "variables", "authorizer"} {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(append(options, permissions()...)...)
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
	old, err := asJSON(r.Old)
	if err != nil {
		return nil, err
	}
	user := map[string]any{"username": r.User}
	if r.Node != "" {
		user["extra"] = map[string]any{"authentication.kubernetes.io/node-name": []any{r.Node}}
	}
	scope := map[string]any{
		"object": object, "oldObject": old, "variables": variables, "authorizer": r.Permitted,
		"request": map[string]any{"namespace": r.Namespace, "userInfo": user, "resource": map[string]any{"resource": r.Resource}},
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

// permissions are the functions by which a policy asks what a user may. Each returns what it
// is called of: the authorizer is a boolean here.
func permissions() []cel.EnvOption {
	var out []cel.EnvOption
	for _, name := range []string{"group", "resource", "name", "check"} {
		out = append(out, cel.Function(name, cel.MemberOverload(name+"_of", []*cel.Type{cel.DynType, cel.StringType}, cel.DynType,
			cel.BinaryBinding(func(of, _ ref.Val) ref.Val { return of }))))
	}
	return append(out, cel.Function("allowed", cel.MemberOverload("allowed_of", []*cel.Type{cel.DynType}, cel.BoolType,
		cel.UnaryBinding(func(of ref.Val) ref.Val { return of }))))
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
