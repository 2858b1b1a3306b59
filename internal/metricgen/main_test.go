package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageIsThatOfTheTables(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../" + page)
	require.NoError(t, err)
	rules, err := readRules("../../" + rulesFile)
	require.NoError(t, err)
	require.Equal(t, text()+alertText(rules), string(got), "run make generate")
}

func TestEachMetricIsThereOnceAndExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range sections() {
		for _, m := range s.metrics {
			require.False(t, seen[m.Name], m.Name)
			seen[m.Name] = true
			require.NotEmpty(t, m.Help, m.Name)
			require.NotContains(t, m.Help, "|", m.Name)
		}
	}
}
