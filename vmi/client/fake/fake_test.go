package fake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/contract"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
)

func TestTheFakeKeepsTheContractOfTheRealOne(t *testing.T) {
	c, err := client.New(fake.New().Config())
	require.NoError(t, err)
	contract.Run(t, c, "default")
}

func TestTheVerbsOfTheFakeKeepTheContract(t *testing.T) {
	c, err := client.New(fake.New().Config())
	require.NoError(t, err)
	contract.RunVerbs(t, c, "default")
}
