package verb

import (
	"bytes"
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// decode decodes a body of options, JSON or YAML, into them. An empty one is none. YAML has
// no aliases: a body of some KiB could stand for gigabytes.
func decode(b []byte, options any) error {
	if len(bytes.TrimSpace(b)) == 0 || json.Unmarshal(b, options) == nil {
		return nil
	}
	var err error
	if bytes.ContainsAny(b, "&*") {
		err = errors.New("it is no JSON of the options, and YAML is read without the characters & and *")
	} else {
		err = yaml.Unmarshal(b, options)
	}
	if err != nil {
		return bad("Can not unmarshal Request body to struct, error: %v", err)
	}
	return nil
}

// dry says that nothing is to be done.
func dry(run []string) (bool, error) {
	switch {
	case len(run) == 0:
		return false, nil
	case len(run) == 1 && run[0] == metav1.DryRunAll:
		return true, nil
	}
	return false, bad("dryRun: %q is not supported; leave it out, or give [\"All\"]", run)
}
