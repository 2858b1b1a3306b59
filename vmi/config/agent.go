package config

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// AgentVersions are the versions of guests' agents that a cluster supports, as
// patterns as in path.Match. Empty: 2 and all later ones.
type AgentVersions []string

// oldestAgent is the first major version that is supported where nothing is
// configured.
const oldestAgent = 2

// Support says whether an agent of this version is supported.
func (a AgentVersions) Support(version string) bool {
	if len(a) == 0 {
		major, _, _ := strings.Cut(version, ".")
		n, err := strconv.Atoi(major)
		return err == nil && n >= oldestAgent
	}
	return slices.ContainsFunc(a, func(pattern string) bool {
		ok, err := path.Match(pattern, version)
		return ok && err == nil
	})
}

// String names them for people.
func (a AgentVersions) String() string {
	if len(a) == 0 {
		return strconv.Itoa(oldestAgent) + ".* and later"
	}
	return strings.Join(a, ", ")
}
