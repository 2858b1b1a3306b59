package main

import (
	"bufio"
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// fieldLists is where the lists of KubeVirt's fields are, if they are here.
const fieldLists = "../../../shared/conformance/fields"

// line is a field in a list: its path, and what is said about it.
type line struct {
	path  string
	words []string
}

// list is the list of the fields of a kind.
type list struct {
	head  []string
	lines []line
}

func readList(t *testing.T, plural string) list {
	t.Helper()
	f, err := os.Open(filepath.Join(fieldLists, plural+".txt"))
	require.NoError(t, err)
	defer f.Close()
	var l list
	for s := bufio.NewScanner(f); s.Scan(); {
		if text, ok := strings.CutPrefix(s.Text(), "# "); ok {
			l.head = append(l.head, text)
			continue
		}
		words := strings.Fields(s.Text())
		l.lines = append(l.lines, line{path: words[0], words: words[1:]})
	}
	return l
}

// generate reads the source and has controller-gen make the schemas of all
// fields.
func generate(t *testing.T) (*model, []*definition) {
	t.Helper()
	if _, err := os.Stat(fieldLists); err != nil {
		t.Skip("the conformance data are not here")
	}
	t.Chdir("../..")
	groups, err := findGroups(root)
	require.NoError(t, err)
	m, err := readModel(groups)
	require.NoError(t, err)
	made, err := schemas()
	require.NoError(t, err)
	t.Chdir("internal/apigen")
	var all []*definition
	for _, d := range made {
		text, err := d.yaml()
		require.NoError(t, err)
		own := &definition{file: d.file}
		require.NoError(t, yaml.Unmarshal(text, &own.root))
		all = append(all, own)
	}
	return m, all
}

// schemas makes them once for all tests, each of which takes a copy.
var schemas = sync.OnceValues(func() ([]*definition, error) {
	groups, err := findGroups(root)
	if err != nil {
		return nil, err
	}
	return wholeSchemas([]string{"hack/tool", "controller-gen"}, groups)
})

// plural is the name of the resource with its group.
func (d *definition) plural() string {
	return d.names()["plural"].(string) + "." + d.root.child("spec")["group"].(string)
}

// ofTemplate says that a field is one of a template's VMI or VM, which the list of that
// kind accounts for.
func ofTemplate(path string) bool {
	return strings.HasPrefix(path, templateSpec+".") || strings.HasPrefix(path, vmTemplateSpec+".")
}

func below(path, field string) bool {
	return path == field || strings.HasPrefix(path, field+".") || strings.HasPrefix(path, field+"{}")
}

func TestEveryFieldOfKubeVirtsIsAccountedFor(t *testing.T) {
	m, all := generate(t)
	for kind := range refused {
		require.True(t, slices.ContainsFunc(all, func(d *definition) bool { return d.kind() == kind }), "there is no kind %s", kind)
	}
	for _, d := range all {
		t.Run(d.kind(), func(t *testing.T) {
			ours := rows(m, d)
			for i := range ours[1:] {
				require.NotEqual(t, ours[i].path, ours[i+1].path, "it is there twice")
			}
			n := map[string]int{}
			for _, theirs := range readList(t, d.plural()).lines {
				if ofTemplate(theirs.path) {
					continue
				}
				i := slices.IndexFunc(ours, func(r row) bool {
					return r.path == theirs.path || r.state == stateRefused && below(theirs.path, r.path)
				})
				if i < 0 {
					t.Errorf("%s has no type and no reason in refused.go", theirs.path)
					continue
				}
				n[ours[i].state]++
			}
			t.Logf("of the listed fields: %d served, %d typed, %d refused", n[stateServed], n[stateTyped], n[stateRefused])
		})
	}
}

// foreignFields are types of Kubernetes' own that have got more fields since, or
// that the lists do not describe.
var foreignFields = []string{"spec.livenessProbe", "spec.readinessProbe"}

// ownFields are fields beside KubeVirt's. Only a status has any: KubeVirt's clients
// ignore what they do not know, and no manifest sets it.
var ownFields = []string{"status.guestReboots", "status.guestPanics", "status.reason", "status.replaced[]"}

func TestNoFieldIsInvented(t *testing.T) {
	m, all := generate(t)
	for _, d := range all {
		listed := map[string]bool{}
		for _, theirs := range readList(t, d.plural()).lines {
			listed[theirs.path] = true
		}
		for _, r := range rows(m, d) {
			if r.state == stateRefused || r.kind == "value" {
				continue // not offered, or no field
			}
			if !slices.ContainsFunc(slices.Concat(foreignFields, ownFields), func(f string) bool { return below(r.path, f) }) {
				require.True(t, listed[r.path], "%s: KubeVirt has no field %s", d.kind(), r.path)
			}
		}
	}
}

func TestTheGeneratedFilesAreUpToDate(t *testing.T) {
	m, all := generate(t)
	text, err := os.ReadFile("../../" + table)
	require.NoError(t, err)
	require.Equal(t, string(text), renderTable(m, all), "run make generate")
	pruned := map[string][]gap{}
	for _, d := range all {
		if why := m.types[d.kind()].unserved; why != "" {
			pruned[d.kind()] = []gap{{why: why}}
			require.NoFileExists(t, filepath.Join("../..", crds, d.file))
			continue
		}
		p := pruner{model: m}
		p.definition(d)
		require.Empty(t, p.faults)
		pruned[d.kind()] = p.pruned
	}
	served := servedOf(m, all)
	digest := digestOfStatuses(served)
	annotateStatuses(served, digest)
	for _, d := range served {
		want, err := d.yaml()
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("../..", crds, d.file))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run make generate")
	}
	for file, code := range map[string][]byte{unserved: renderUnserved(pruned), statuses: renderStatuses(digest)} {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		want, err := format.Source(code)
		require.NoError(t, err)
		require.Equal(t, string(want), string(text), "run make generate")
	}
}
