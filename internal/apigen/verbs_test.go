package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRolesOfUsersHaveTheVerbsOfTheTable(t *testing.T) {
	b, err := os.ReadFile("../../" + users)
	require.NoError(t, err)
	require.Equal(t, string(b), withVerbs(string(b)), "run make generate")
	without := strings.Replace(string(b), "  - virtualmachineinstances/softreboot\n", "", 1)
	require.NotEqual(t, string(b), without)
	require.Equal(t, string(b), withVerbs(without))
}
