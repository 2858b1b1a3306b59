package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
)

// TestAttackTheCDISpecificationOfANodeIsKept changes what the container runtime reads
// in ways that leave it readable, because other tests start VMIs meanwhile. The long
// form also takes it away.
func TestAttackTheCDISpecificationOfANodeIsKept(t *testing.T) {
	t.Parallel()
	testenv.Root(t)
	require.NoError(t, world.err, "set up the cluster")
	n := traces{t: t, node: "n1"}
	const file = "/var/run/cdi/devices.kubevirt.io-vm.json"
	was := n.run("cat " + file)
	require.Contains(t, was, "devices.kubevirt.io/vm")
	n.run("cp " + file + " /root/cdi-copy")
	attacks := []string{
		"chmod 0600 " + file,
		"ln -s /root/cdi-copy /var/run/cdi/attack.tmp && mv -T /var/run/cdi/attack.tmp " + file,
		"ln " + file + " /var/run/cdi/attack.tmp; echo >> /var/run/cdi/attack.tmp; rm /var/run/cdi/attack.tmp",
	}
	if testenv.Long() {
		attacks = append(attacks, "rm "+file, "echo '{}' > "+file, "rm "+file+"; mkdir "+file)
	}
	for _, attack := range attacks {
		n.run(attack)
		eventually(t, soon, func() error {
			if kind := strings.TrimSpace(n.run("stat -c '%F %a %U' " + file + " 2>&1 || true")); kind != "regular file 644 root" {
				return fmt.Errorf("after %q: %s", attack, kind)
			}
			if now := n.run("cat " + file); now != was {
				return fmt.Errorf("after %q: %s", attack, now)
			}
			return nil
		})
	}
	require.Equal(t, was, n.run("cat /root/cdi-copy"), "the target of the link")
}
