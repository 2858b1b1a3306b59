package validate

import (
	"fmt"
	"path"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	mostAgentVersions  = 32
	maxAgentVersion    = 63
	agentVersionsAllow = "must be a version of at most 63 characters in which * stands for any characters, " +
		"? for one and [45] for one of these, such as 5.*; it is no regular expression"
)

// agentVersion matches what may be a pattern for versions. What only a regular
// expression has would match nothing, and so would a dot in front.
var agentVersion = regexp.MustCompile(`^[0-9A-Za-z*?\[][0-9A-Za-z.~_*?\[\]-]*$`)

func agentVersions(at *field.Path, patterns []string) field.ErrorList {
	var l field.ErrorList
	if n := len(patterns); n > mostAgentVersions {
		l = append(l, field.Invalid(at, plural(n, "pattern"), fmt.Sprintf("must be at most %d", mostAgentVersions)))
	}
	for i, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || len(p) > maxAgentVersion || !agentVersion.MatchString(p) {
			l = append(l, field.Invalid(at.Index(i), p, agentVersionsAllow))
		}
	}
	return l
}
