package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/audit"
)

const (
	patch = `{"stage":"ResponseComplete","verb":"patch","userAgent":"virt-controller/v1 (linux)","objectRef":{"resource":"pods","subresource":"status","namespace":"a","name":"p"},"responseStatus":{"code":200}}` + "\n"
	event = `{"stage":"ResponseComplete","verb":"create","userAgent":"virt-handler","objectRef":{"resource":"events","namespace":"a"}}` + "\n"
)

func TestALogThatGrowsIsReadOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	l := audit.Follower{Path: path}
	read := func(content string) (all []string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, l.Next(func(e audit.Entry) { all = append(all, e.Component()+": "+e.What()) }))
		return all
	}
	require.Equal(t, []string{"virt-controller: patch pods/status"}, read(patch+event[:20]))
	require.Empty(t, read(patch+event[:40]))
	require.Equal(t, []string{"virt-handler: events"}, read(patch+event))
	require.NoError(t, os.WriteFile(path, []byte(patch), 0o600))
	require.ErrorContains(t, l.Next(func(audit.Entry) {}), "begun anew")
}
