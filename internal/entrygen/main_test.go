package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheListsHaveEachEntryOfTheirPackages(t *testing.T) {
	for _, l := range lists {
		want, err := l.code("../..")
		require.NoError(t, err)
		got, err := os.ReadFile(l.file("../.."))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s is not up to date: run make generate", l.file(""))
	}
}

func TestAnEntryIsAVariableOrAType(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  []string
		err   string
	}{
		"a variable":                 {files: map[string]string{"a.go": "// a is one.\n//\n// +podvisor:entry\nvar a = 1\n"}, want: []string{"a"}},
		"a type":                     {files: map[string]string{"a.go": "// A is one.\n//\n// +podvisor:entry\ntype A struct{}\n"}, want: []string{"A{}"}},
		"in the order of the files":  {files: map[string]string{"b.go": "// +podvisor:entry\nvar a = 1\n", "a.go": "// +podvisor:entry\nvar b = 1\n"}, want: []string{"b", "a"}},
		"what has no marker is none": {files: map[string]string{"a.go": "// a is none.\nvar a = 1\n\n// not +podvisor:entry\nvar b = 1\n"}},
		"a test has none":            {files: map[string]string{"a_test.go": "// +podvisor:entry\nvar a = 1\n"}},
		"a constant is refused":      {files: map[string]string{"a.go": "// +podvisor:entry\nconst a = 1\n"}, want: []string{""}, err: "neither one variable nor one type"},
		"two at once are refused":    {files: map[string]string{"a.go": "// +podvisor:entry\nvar (\n\ta = 1\n\tb = 2\n)\n"}, want: []string{""}, err: "neither one variable nor one type"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, text := range tt.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte("package p\n\n"+text), 0o600))
			}
			got, err := entriesIn(dir)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestAListWithoutEntriesIsRefused(t *testing.T) {
	_, err := list{dir: "."}.code(".")
	require.ErrorContains(t, err, "has the marker")
}
