package replicaset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// mostNamed is how many VMIs a message names.
const mostNamed = 10

// templateHash is the hash of the spec of the set's template, with defaults applied: one that
// was stored while the webhook was down is completed with its next update, and is no other
// template then. Empty: it has no form in JSON.
func templateHash(o Observed) string {
	raw, err := json.Marshal(defaults.ReplicaSet(o.Set, o.Profile).Spec.Template.Spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// outdated names the VMIs of the set that were made from an earlier template. Of one that
// was adopted, or made before this was noted, it is not known. Nil: there are none.
func outdated(o Observed, m members) *vmi.Finding {
	var names []string
	now := templateHash(o)
	for _, v := range m.alive {
		if of := v.Annotations[TemplateAnnotation]; of != "" && of != now {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	n := len(names)
	if n > mostNamed {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
	}
	return &vmi.Finding{Reason: Outdated, Message: fmt.Sprintf(
		"%d of %d VMIs were made from an earlier template: %s. Delete them, some at a time, and others of the template take their places", n, len(m.alive), strings.Join(names, ", "))}
}
