package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/podvisor/podvisor/internal/vmi/verb"
	"github.com/podvisor/podvisor/vmi"
)

// ofRole are the rules about verbs of a ClusterRole, up to the next rule, comment or
// document.
var (
	nameOfRole = regexp.MustCompile(`(?m)^  name: kubevirt\.io:(view|edit|admin|migrate)$`)
	ofVerbs    = regexp.MustCompile(`(?m)(^- apiGroups: \[` + regexp.QuoteMeta(vmi.SubresourceGroup) + `\]\n(  .*\n)+)+`)
)

// writeVerbs writes the rules about verbs into the file of the roles of users.
func writeVerbs(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(withVerbs(string(text))), 0o644)
}

// withVerbs is the text of the roles with the rules that follow from the table of verbs.
func withVerbs(text string) string {
	documents := strings.Split(text, "\n---\n")
	for i, d := range documents {
		if m := nameOfRole.FindStringSubmatch(d); m != nil {
			d = ofVerbs.ReplaceAllLiteralString(strings.TrimSuffix(d, "\n")+"\n", rules(verb.Role(m[1])))
			if i < len(documents)-1 {
				d = strings.TrimSuffix(d, "\n")
			}
			documents[i] = d
		}
	}
	return strings.Join(documents, "\n---\n")
}

// rules are the rules about verbs of a role.
func rules(role verb.Role) string {
	var b strings.Builder
	for _, of := range []struct{ method, word string }{{verb.Get, "get"}, {verb.Put, "update"}} {
		all := verb.Resources(role, of.method)
		if len(all) == 0 {
			continue
		}
		fmt.Fprintf(&b, "- apiGroups: [%s]\n", vmi.SubresourceGroup)
		if len(all) == 1 {
			fmt.Fprintf(&b, "  resources: [%s]\n", all[0])
		} else {
			fmt.Fprintf(&b, "  resources:\n  - %s\n", strings.Join(all, "\n  - "))
		}
		fmt.Fprintf(&b, "  verbs: [%s]\n", of.word)
	}
	return b.String()
}
