package testenv

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// DomainSchema is libvirt's schema of domains on this host, and says whether it knows the
// value. A schema that is older than the launcher's libvirt does not know all.
func DomainSchema(t testing.TB) (file string, knows func(value string) bool) {
	t.Helper()
	file = File(t, "/usr/share/libvirt/schemas/domain.rng")
	common, err := os.ReadFile(filepath.Join(filepath.Dir(file), "domaincommon.rng"))
	require.NoError(t, err)
	return file, func(value string) bool { return bytes.Contains(common, []byte("<value>"+value+"</value>")) }
}
