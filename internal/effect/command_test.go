package effect

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"
	"github.com/digitalocean/go-libvirt/socket/dialers"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/proof"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// newLibvirt connects to a libvirt daemon of an ordinary user that ends with the test.
func newLibvirt(t *testing.T) *libvirt.Libvirt {
	t.Helper()
	return newLibvirtOf(t, testenv.LauncherRoot(t))
}

// newLibvirtOf connects to that of the image whose files are in the folder root, or of the
// host, if root is empty.
func newLibvirtOf(t *testing.T, root string) *libvirt.Libvirt {
	t.Helper()
	testenv.Root(t)
	for _, name := range []string{"setpriv", process.DaemonPath, process.QEMUPath(process.Arch())} {
		testenv.Program(t, name)
	}
	dir, err := os.MkdirTemp("/tmp", "libvirt") // the paths of sockets are short, and its user can enter it
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := process.NewDaemon(process.Config{Dir: dir})
	require.NoError(t, config.Prepare())
	const uid = "65534" // libvirt needs a user that has a line in /etc/passwd
	_, err = user.LookupId(uid)
	require.NoError(t, err)
	out, err := exec.Command("chown", "-R", uid, dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	output := &testenv.Output{}
	tun := dir + "/tun"
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-c", "set -e; mknod -m 666 "+tun+" c 10 200; mount --bind "+tun+" /dev/net/tun; ip tuntap add tap0 mode tap user "+uid+"; "+testenv.LauncherMounts+` exec "$@"`, "sh", "setpriv", "--pdeathsig", "KILL", "--reuid", uid, "--clear-groups", "--no-new-privs", "--inh-caps", "-all,+net_admin", "--ambient-caps", "-all,+net_admin", process.DaemonPath)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir + "/home", "XDG_RUNTIME_DIR=" + dir + "/run", "XDG_CONFIG_HOME=" + dir + "/conf", "XDG_CACHE_HOME=" + dir + "/cache", "LAUNCHER_ROOT=" + root}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = output, output, time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("libvirt:\n%s", output)
		}
	})
	conn := libvirt.NewWithDialer(dialers.NewLocal(dialers.WithSocket(config.Socket()), dialers.WithLocalTimeout(time.Minute)))
	require.Eventually(t, func() bool { return conn.ConnectToURI("qemu:///session") == nil }, time.Minute, 20*time.Millisecond, "the daemon answers")
	t.Cleanup(func() { _ = conn.Disconnect() })
	return conn
}

// made is what libvirt makes of the domains of a VMI, with and without KVM, or why it
// does not take them.
type made map[string]string

// differ says that libvirt makes something different of what both have.
func (m made) differ(other made) bool {
	for how, text := range m {
		if o, ok := other[how]; ok && o != text {
			return true
		}
	}
	return false
}

// of makes something of the domains of a VMI. Libvirt is not asked for KVM, which the hosts
// of tests do not have: the rest of a domain for KVM is what it makes something of.
func of(t *testing.T, v *vmi.VirtualMachineInstance, translate func(xml string) (string, error)) (made, error) {
	t.Helper()
	if _, err := podOf(v, pod.InitCopy); err != nil {
		return nil, err // the VMI is refused
	}
	v = defaults.Instance(v, defaults.Profile{})
	if c := v.Spec.Domain.CPU; c.Model == vmi.CPUModelHost {
		c.Model = "Westmere" // the processor of the host is KVM's
	}
	plan, err := planOf(v)
	if err != nil {
		return nil, err
	}
	_, disks, err := disksOf(v, nil)
	if err != nil {
		return nil, err
	}
	out, faults := made{}, []error{}
	for _, kvm := range []bool{true, false} {
		x, err := domainOn(v, plan.Attachments, disks, domain.Host{KVM: kvm, AllowEmulation: true})
		if err == nil {
			x, err = translate(strings.Replace(x, `<domain type="kvm"`, `<domain type="qemu"`, 1))
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		out[fmt.Sprintf("kvm-%t", kvm)] = x
	}
	if len(out) == 0 {
		return nil, errors.Join(faults...)
	}
	return out, nil
}

// toggled are the values of the leaf that are tried: both of a boolean that is not set.
func (l leaf) toggled(now any) []any {
	if l.typ.Kind() == reflect.Bool && now == nil {
		return []any{false, true}
	}
	return l.others(now)
}

// seenBy changes each leaf whose proof is this test, and requires that libvirt makes
// something different of the domain then.
func seenBy(t *testing.T, translate func(xml string) (string, error)) {
	t.Helper()
	trees, before := bases(t), map[string]made{}
	for name, tree := range trees {
		m, err := of(t, decode(t, tree), translate)
		if err != nil {
			continue
		}
		again, err := of(t, decode(t, tree), translate)
		require.NoError(t, err)
		require.Equal(t, m, again, "the same of the same")
		before[name] = m
	}
	n := 0
	for _, l := range leaves() {
		p, ok := proof.Of(vmi.VirtualMachineInstances.Kind, l.path)
		if _, idle := without[l.path]; idle || !ok || p.Test != t.Name() {
			continue
		}
		n++
		found, faults := l.changes(t, trees, before, translate)
		require.True(t, found, "%s: libvirt makes nothing different of any domain\n%v", l.path, errors.Join(faults...))
	}
	require.NotZero(t, n, "no proof names this test")
	t.Logf("libvirt takes %d fields", n)
}

// changes says whether libvirt makes something different of a domain when the leaf
// changes, and what it does not take.
func (l leaf) changes(t *testing.T, trees map[string]map[string]any, before map[string]made, translate func(xml string) (string, error)) (found bool, faults []error) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		for _, p := range places(trees[name], l.path) {
			for _, value := range l.toggled(p.get(trees[name])) {
				m, err := of(t, decode(t, l.changed(trees[name], p, value)), translate)
				if err == nil && before[name].differ(m) {
					return true, nil
				}
				if err != nil {
					faults = append(faults, fmt.Errorf("%s: %v = %v: %w", name, p, value, err))
				}
			}
		}
	}
	return false, faults
}

func TestLibvirtStartsQEMUWithEveryFieldOfTheDomain(t *testing.T) {
	conn := newLibvirt(t)
	seenBy(t, func(xml string) (string, error) { return commandLine(conn, xml) })
}

// timeOfRTC is the guest's time at its start on the command line of QEMU. Libvirt adds the
// adjustment of the clock to the host's time.
var timeOfRTC = regexp.MustCompile(`-rtc base=(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})`)

// commandLine returns how libvirt would start QEMU for the domain, with the guest's time as
// its distance from the host's: two command lines of one domain are equal at any time.
func commandLine(conn *libvirt.Libvirt, xml string) (string, error) {
	for {
		before := time.Now()
		line, err := conn.ConnectDomainXMLToNative("qemu-argv", xml, 0)
		found := timeOfRTC.FindStringSubmatchIndex(line)
		if err != nil || found == nil {
			return line, err
		}
		// time(2) can be one tick of the kernel behind
		if now := before.Add(-20 * time.Millisecond); now.Unix() != time.Now().Unix() {
			continue
		}
		base, err := time.Parse("2006-01-02T15:04:05", line[found[2]:found[3]])
		if err != nil {
			return "", err
		}
		return line[:found[2]] + base.Sub(before.UTC().Truncate(time.Second)).String() + line[found[3]:], nil
	}
}

// The command lines are without the addresses and links of interfaces, which libvirt
// takes from what it keeps of a domain.
func TestLibvirtKeepsEveryFieldOfAnInterface(t *testing.T) {
	conn := newLibvirt(t)
	seenBy(t, func(xml string) (string, error) {
		d, err := conn.DomainDefineXMLFlags(xml, libvirt.DomainDefineValidate)
		if err != nil {
			return "", err
		}
		defer func() { require.NoError(t, conn.DomainUndefineFlags(d, libvirt.DomainUndefineNvram)) }()
		return conn.DomainGetXMLDesc(d, libvirt.DomainXMLInactive)
	})
}
