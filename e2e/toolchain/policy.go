package toolchain

import "path/filepath"

// policies is the program that makes the NetworkPolicies hold on a node.
func policies(source string) (part, error) {
	dir := filepath.Join(source, "policy")
	version, err := required(dir, "github.com/cloudnativelabs/kube-router/v2")
	if err != nil {
		return part{}, err
	}
	return part{name: "policy", version: version, dir: dir, programs: []program{{output: "policy", pkg: "."}}}, nil
}
