//go:build virtctl

package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
)

// virtctlUser has the rights of an administrator of the test's namespace, and none elsewhere.
const virtctlUser = "victoria"

// virtctl is KubeVirt's client, in the namespace of a test.
type virtctl struct {
	space
	path string
	// as is whose rights it uses. Empty: those of the administrator of the cluster.
	as string
}

// newVirtctl needs the path of a virtctl.
func newVirtctl(t *testing.T) virtctl {
	t.Helper()
	path := os.Getenv("VIRTCTL")
	require.NotEmpty(t, path, "VIRTCTL must be the path of a virtctl: run make test-virtctl")
	c := virtctl{newSpace(t), path, virtctlUser}
	for _, role := range []string{"admin", "kubevirt.io:migrate"} {
		c.kubectl("create", "rolebinding", strings.ReplaceAll(role, ":", "-"), "--clusterrole="+role, "--user="+virtctlUser)
	}
	return c
}

func (c virtctl) command(args ...string) *exec.Cmd {
	all := []string{"--kubeconfig", world.cluster.Kubeconfig, "--namespace", c.name}
	if c.as != "" {
		all = append(all, "--as", c.as)
	}
	cmd := exec.CommandContext(c.t.Context(), c.path, append(all, args...)...)
	cmd.Dir = c.t.TempDir()
	return cmd
}

// call is a virtctl that runs, or has ended.
type call struct {
	t         *testing.T
	cmd       *exec.Cmd
	out, errs testenv.Output
	done      chan struct{}
}

func (c virtctl) start(args ...string) *call { return c.startWith(nil, args...) }

func (c virtctl) startWith(in io.Reader, args ...string) *call {
	c.t.Helper()
	r := &call{t: c.t, cmd: c.command(args...), done: make(chan struct{})}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = in, &r.out, &r.errs
	require.NoError(c.t, r.cmd.Start())
	c.t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		<-r.done
		if c.t.Failed() {
			c.t.Logf("$ %s\n%s%s", r.cmd, &r.out, &r.errs)
		}
	})
	go func() { defer close(r.done); _ = r.cmd.Wait() }()
	return r
}

// says waits until it has written the text.
func (r *call) says(text string) {
	r.t.Helper()
	eventually(r.t, soon, func() error {
		if !strings.Contains(r.out.String()+r.errs.String(), text) {
			return fmt.Errorf("%s has not said %q", r.cmd, text)
		}
		return nil
	})
}

// ends waits for its end, and returns its status.
func (r *call) ends(limit time.Duration) int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(limit):
		require.FailNowf(r.t, "it has not ended", "%s\n%s%s", r.cmd, &r.out, &r.errs)
	}
	return r.cmd.ProcessState.ExitCode()
}

// interrupted ends it as Ctrl-C does.
func (r *call) interrupted() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(os.Interrupt))
	require.Zero(r.t, r.ends(soon))
}

// does runs a command that succeeds, and returns what it writes.
func (c virtctl) does(args ...string) string {
	c.t.Helper()
	r := c.start(args...)
	require.Zero(c.t, r.ends(long), "%s\n%s", r.cmd, &r.errs)
	return r.out.String()
}

// says runs a command that succeeds and writes this.
func (c virtctl) says(want string, args ...string) {
	c.t.Helper()
	require.Equal(c.t, want+"\n", c.does(args...))
}

// refuses runs a command that fails, and whose error is this.
func (c virtctl) refuses(want string, args ...string) {
	c.t.Helper()
	r := c.start(args...)
	require.Equal(c.t, 1, r.ends(long), "%s\n%s", r.cmd, &r.out)
	said := strings.TrimSpace(r.errs.String())
	require.True(c.t, strings.HasSuffix(said, want), "%s\nsays: %s\nand not: %s", r.cmd, said, want)
}

// console opens the console of the VMI at a terminal.
func (c virtctl) opens(limit time.Duration, name string) *console {
	c.t.Helper()
	at := c.terminal(c.command("console", name))
	at.showsIn(limit, "Successfully connected to "+name+" console. Press Ctrl+] or Ctrl+5 to exit console.")
	return at
}

// conflict is what the API says of an object that is not in the state for a verb.
func conflict(kind, name, why string) string {
	return fmt.Sprintf("Operation cannot be fulfilled on %s.kubevirt.io %q: %s", kind, name, why)
}

const (
	aVM  = "virtualmachine"
	aVMI = "virtualmachineinstance"
)

// TestAnUnmodifiedVirtctlWorks runs the client of KubeVirt as a user does. It takes minutes, and needs a
// program whose build takes minutes, so that it is compiled for make test-virtctl alone.
func TestAnUnmodifiedVirtctlWorks(t *testing.T) {
	c := newVirtctl(t)
	c.applyVM(vmi.RunHalted, guest("tool", cloudConfig("hostname: tool")))
	bare := guest("bare", cloudConfig("hostname: bare"))
	bare.Spec.Domain.Devices.AutoattachSerialConsole, bare.Spec.Domain.Devices.AutoattachGraphicsDevice = new(false), new(false)
	c.create(bare)
	homeless := guest("homeless", cloudConfig("hostname: homeless"))
	homeless.Spec.NodeSelector = map[string]string{"podvisor.io/there-is": "none"}
	c.create(homeless)
	began, waits := time.Now(), c.start("console", "--timeout=1", "homeless")

	require.Regexp(t, `Client Version: .*GitVersion:"v1\.[^\n]*\nServer Version: .*GitVersion:"v`, c.does("version"))
	for _, part := range []struct {
		name string
		do   func(*testing.T, virtctl)
	}{
		{"a VM that is off", virtctlOff},
		{"a console is waited for, and is one client's", virtctlConsole},
		{"a screen is one client's, and is photographed", virtctlScreen},
		{"the guest says what it is", virtctlAgent},
		{"a port of the guest is one of this host", virtctlPorts},
		{"a guest is paused, and goes on", virtctlPause},
		{"a guest boots again in the same VMI", virtctlReboot},
		{"a VMI without serial port and screen", virtctlBare},
		{"what is described, expanded and exposed", virtctlSpec},
		{"what is missing says so", virtctlMissing},
		{"a VM is restarted and stopped", virtctlRestart},
	} {
		require.True(t, t.Run(part.name, func(t *testing.T) {
			of := c
			of.t = t
			part.do(t, of)
		}), "the later parts need this one")
	}

	require.Equal(t, 1, waits.ends(long))
	require.GreaterOrEqual(t, time.Since(began), time.Minute)
	require.True(t, strings.HasSuffix(waits.errs.String(), "Timeout trying to connect to the virtual machine instance\n"), waits.errs.String())
}

func virtctlOff(t *testing.T, c virtctl) {
	for verb, want := range map[string]string{
		"start":   `Error starting VirtualMachine virtualmachine.kubevirt.io "none" not found`,
		"stop":    `error stopping VirtualMachine virtualmachine.kubevirt.io "none" not found`,
		"restart": `error restarting VirtualMachine: virtualmachine.kubevirt.io "none" not found`,
		"migrate": `Error migrating VirtualMachine virtualmachine.kubevirt.io "none" not found`,
	} {
		c.refuses(want, verb, "none")
	}
	c.refuses("error stopping VirtualMachine "+conflict(aVM, "tool", "VM is not running"), "stop", "tool")
	c.refuses("error restarting VirtualMachine: "+conflict(aVM, "tool", "RunStategy Halted does not support manual restart requests; change spec.runStrategy"), "restart", "tool")
	c.refuses("Error pausing VirtualMachineInstance tool. VirtualMachine tool is not set to run", "pause", "vm", "tool")
	c.refuses(`Error unpausing VirtualMachineInstance tool: virtualmachineinstance.kubevirt.io "tool" not found`, "unpause", "vm", "tool")
	c.refuses(`virtualmachineinstance.kubevirt.io "tool" not found`, "console", "tool")
	c.refuses(`can't access VMI tool: virtualmachineinstance.kubevirt.io "tool" not found`, "vnc", "--proxy-only", "tool")
	c.says("Dry Run execution\nVM tool was scheduled to start", "start", "--dry-run", "tool")
	require.Equal(t, vmi.RunHalted, c.getVM("tool").Spec.Strategy())

	c.says("VM tool was scheduled to start", "start", "tool")
	require.Equal(t, vmi.RunAlways, c.getVM("tool").Spec.Strategy())
}

func virtctlConsole(t *testing.T, c virtctl) {
	var first *console
	// The VMI is not made yet, which a client takes for an answer.
	eventually(t, long, func() error {
		_, err := world.vmis.VirtualMachineInstances(c.name).Get(t.Context(), "tool", metav1.GetOptions{})
		return err
	})
	first = c.opens(boots, "tool")
	c.refuses("Error starting VirtualMachine "+conflict(aVM, "tool", "VM is already running"), "start", "tool")
	c.awaitConsole(c.get("tool"), "press Enter for a root shell")
	first.types("\r")
	first.shows("root@tool")
	first.types("echo answer-$((6*7))\r")
	first.shows("answer-42")

	second := c.opens(soon, "tool")
	first.shows("You were disconnected from the console. This could be caused by one of the following:")
	first.shows("websocket: close 1006 (abnormal closure): unexpected EOF")
	first.ends()
	require.Equal(t, 1, first.cmd.ProcessState.ExitCode())
	second.types("echo again-$((2+3))\r")
	second.shows("again-5")
	second.types("\x1d")
	second.ends()
	require.Zero(t, second.cmd.ProcessState.ExitCode())
}

// screen is a client of the screen of the VMI.
func (c virtctl) screen(args ...string) (*call, int) {
	c.t.Helper()
	r := c.start(append([]string{"vnc", "--proxy-only", "tool"}, args...)...)
	r.says("}\n")
	var at struct{ Port int }
	require.NoError(c.t, json.Unmarshal([]byte(r.out.String()), &at))
	return r, at.Port
}

// viewer is a program that looks at a screen.
type viewer struct {
	t *testing.T
	net.Conn
}

// view reads what the server of a screen says first.
func view(t *testing.T, port int) viewer {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(soon)))
	v := viewer{t, conn}
	require.Equal(t, "RFB 003.008\n", string(v.next(12)))
	return v
}

func (v viewer) next(n int) []byte {
	v.t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(v, b)
	require.NoError(v.t, err)
	return b
}

func (v viewer) send(b ...byte) {
	v.t.Helper()
	_, err := v.Write(b)
	require.NoError(v.t, err)
}

// desktop is the name and the size of the screen.
func (v viewer) desktop() (name string, width, height int) {
	v.t.Helper()
	v.send([]byte("RFB 003.008\n")...)
	require.Contains(v.t, v.next(int(v.next(1)[0])), byte(1), "there is no password")
	v.send(1)
	require.Zero(v.t, binary.BigEndian.Uint32(v.next(4)))
	v.send(1)
	about := v.next(24)
	return string(v.next(int(binary.BigEndian.Uint32(about[20:])))), int(binary.BigEndian.Uint16(about)), int(binary.BigEndian.Uint16(about[2:]))
}

func virtctlScreen(t *testing.T, c virtctl) {
	first, port := c.screen()
	c.refuses("can't access VMI tool: "+conflict(aVMI, "tool", "Active VNC connection. Request denied.: end the other client, or connect without preserveSession"),
		"vnc", "--proxy-only", "--preserve-session", "tool")
	v := view(t, port)
	name, width, height := v.desktop()
	require.Contains(t, name, "tool")
	require.NoError(t, v.Close())
	require.Zero(t, first.ends(soon), &first.errs)

	kept, port := c.screen("--preserve-session")
	view(t, port)
	taken, port := c.screen()
	require.Equal(t, 1, kept.ends(soon), "it has lost the screen")
	require.Contains(t, kept.errs.String(), "error encountered: websocket: close 1006 (abnormal closure): unexpected EOF")
	require.NoError(t, view(t, port).Close())
	require.Zero(t, taken.ends(soon), &taken.errs)

	file := filepath.Join(t.TempDir(), "screen.png")
	require.Empty(t, c.does("vnc", "screenshot", "tool", "-f", file))
	picture, err := os.ReadFile(file)
	require.NoError(t, err)
	for where, b := range map[string][]byte{"a file": picture, "standard output": []byte(c.does("vnc", "screenshot", "tool", "-f", "-", "--move-cursor"))} {
		i, err := png.Decode(bytes.NewReader(b))
		require.NoError(t, err, where)
		require.Equal(t, width, i.Bounds().Dx())
		require.Equal(t, height, i.Bounds().Dy())
	}
	c.refuses(`Can't access VMI none: virtualmachineinstance.kubevirt.io "none" not found`, "vnc", "screenshot", "none", "-f", file)
}

func virtctlAgent(t *testing.T, c virtctl) {
	c.awaitSteady("tool")
	var about vmi.VirtualMachineInstanceGuestAgentInfo
	require.NoError(t, json.Unmarshal([]byte(c.does("guestosinfo", "tool")), &about))
	require.Equal(t, "tool", about.Hostname)
	require.NotEmpty(t, about.GuestAgentVersion)
	require.NotEmpty(t, about.OS.KernelRelease)
	for _, list := range []string{"userlist", "fslist"} {
		var l struct{ Items []any }
		require.NoError(t, json.Unmarshal([]byte(c.does(list, "tool")), &l), list)
	}
	off := conflict(aVMI, "homeless", "VMI is not running")
	c.refuses("Error listing users of VirtualMachineInstance homeless, "+off, "userlist", "homeless")
	c.refuses("Error listing filesystems of VirtualMachineInstance homeless, "+off, "fslist", "homeless")
	c.refuses(fmt.Sprintf("Error getting guestosinfo of VirtualMachineInstance homeless, an error on the server (%q) has prevented the request from succeeding (get virtualmachineinstances.kubevirt.io homeless)", off),
		"guestosinfo", "homeless")
}

func virtctlPorts(t *testing.T, c virtctl) {
	for _, target := range []string{"vmi/tool", "vm/tool", "vmi/tool/" + c.name} {
		port := testenv.Port(t)
		r := c.start("port-forward", target, fmt.Sprintf("%d:80", port))
		r.says(fmt.Sprintf("forwarding tcp 127.0.0.1:%d to 80", port))
		for range 2 {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), http.NoBody)
			require.NoError(t, err)
			request.Close = true
			answer, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			page, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Contains(t, string(page), "tool")
		}
		r.interrupted()
	}

	// What virtctl ssh and scp use.
	in, request := io.Pipe()
	r := c.startWith(in, "port-forward", "--stdio", "vmi/tool", "80")
	t.Cleanup(func() { _ = request.Close() }) // before the end of virtctl is waited for
	_, err := io.WriteString(request, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	r.says("tool")
	require.NoError(t, request.Close())
	require.Zero(t, r.ends(soon), &r.errs)

	// A port that no program of the guest listens on.
	port := testenv.Port(t)
	r = c.start("port-forward", "vmi/tool", fmt.Sprintf("%d:81", port))
	r.says("forwarding tcp")
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer conn.Close()
	r.says("can't access vmi/tool." + c.name + ": dialing VM: dial tcp")
	r.says("connection refused")
	r.interrupted()
}

func virtctlPause(t *testing.T, c virtctl) {
	c.says("VMI tool was scheduled to pause", "pause", "vmi", "tool")
	c.awaitPaused("tool", true)
	c.refuses("Error pausing VirtualMachineInstance tool: "+conflict(aVMI, "tool", "VMI is already paused"), "pause", "vm", "tool")
	c.refuses("Error soft rebooting VirtualMachineInstance tool: "+conflict(aVMI, "tool", "VMI is paused"), "soft-reboot", "tool")
	c.refuses(conflict(aVMI, "tool", "VMI is paused"), "port-forward", "--stdio", "vm/tool", "80")
	paused := c.opens(soon, "tool")
	paused.types("\x1d")
	paused.ends()
	c.says("VMI tool was scheduled to unpause", "unpause", "vm", "tool")
	c.awaitPaused("tool", false)
	c.refuses("Error unpausing VirtualMachineInstance tool: "+conflict(aVMI, "tool", "VMI is not paused"), "unpause", "vmi", "tool")

	c.says("VMI tool was scheduled to pause", "pause", "vm", "tool")
	c.awaitPaused("tool", true)
	c.says("VMI tool was scheduled to unpause", "unpause", "vmi", "tool")
	c.awaitPaused("tool", false)
}

func virtctlReboot(t *testing.T, c virtctl) {
	v := c.get("tool")
	for n, verb := range []string{"soft-reboot", "reset"} {
		c.says("VMI tool was scheduled to "+verb, verb, "tool")
		eventually(t, boots, func() error {
			if got := strings.Count(c.console(v), ready); got != n+2 {
				return fmt.Errorf("after %s: the guest has booted %d times and not %d", verb, got, n+2)
			}
			return nil
		})
		require.Equal(t, v.UID, c.get("tool").UID)
	}
	c.refuses(`Error reseting VirtualMachineInstance none: virtualmachineinstance.kubevirt.io "none" not found`, "reset", "none")
}

func virtctlBare(t *testing.T, c virtctl) {
	c.awaitPhase("bare", vmi.PhaseRunning)
	began := time.Now()
	c.refuses("No serial consoles are present.", "console", "bare")
	require.Less(t, time.Since(began), soon, "it is not waited for")
	c.refuses("can't access VMI bare: No graphics devices are present.", "vnc", "--proxy-only", "bare")
	c.refuses("Can't access VMI bare: No graphics devices are present.", "vnc", "screenshot", "bare", "-f", "none.png")
	c.delete("bare")
}

func virtctlSpec(t *testing.T, c virtctl) {
	expanded := c.does("expand", "--vm", "tool")
	require.Contains(t, expanded, "kind: VirtualMachine\n")
	require.Contains(t, expanded, "    type: q35")
	file := filepath.Join(t.TempDir(), "vm.yaml")
	require.NoError(t, os.WriteFile(file, []byte(expanded), 0o600))
	require.Contains(t, c.does("expand", "--file", file, "--output", "json"), `"kind": "VirtualMachine"`)
	c.says("Service tool-web successfully created for vm tool", "expose", "vm", "tool", "--name", "tool-web", "--port", "80")
	c.says("Dry Run execution\nVM tool was scheduled to migrate", "migrate", "tool", "--dry-run")
	c.refuses("Found no migration to cancel for tool", "migrate-cancel", "tool")
	for _, kind := range []string{"vm", "vmi"} {
		c.says(fmt.Sprintf("%s %s/tool was canceled evacuation", strings.ToUpper(kind), c.name), "evacuate-cancel", kind, "tool")
	}
}

// virtctlMissing is of the table "What is missing" of docs/virtctl.md.
func virtctlMissing(t *testing.T, c virtctl) {
	_, err := world.kubectl.RunInput(t.Context(), strings.NewReader(
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: extra}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}`),
		"-n", c.name, "create", "-f", "-")
	require.NoError(t, err)
	c.refuses(`error removing volume, virtualmachineinstances.subresources.kubevirt.io "tool" is forbidden: User "`+virtctlUser+`" cannot update resource `+
		`"virtualmachineinstances/removevolume" in API group "subresources.kubevirt.io" in the namespace "`+c.name+`"`, "removevolume", "tool", "--volume-name=extra")
	c.as = "" // an administrator of the cluster
	const served = " is not served; kubectl get --raw /apis/subresources.kubevirt.io/v1 lists what is"
	for _, tt := range []struct{ want, command string }{
		{"error adding volume, virtualmachineinstances/addvolume" + served, "addvolume tool --volume-name=extra"},
		{"error adding volume, virtualmachines/addvolume" + served, "addvolume tool --volume-name=extra --persist"},
		{"error removing volume, virtualmachineinstances/removevolume" + served, "removevolume tool --volume-name=extra"},
		{"error dumping vm memory, virtualmachines/memorydump" + served, "memory-dump get tool --claim-name=extra"},
		{"error removing memory dump association, virtualmachines/removememorydump" + served, "memory-dump remove tool"},
		{"error listing object graph of VirtualMachine tool: virtualmachines/objectgraph" + served, "objectgraph tool"},
		{"error listing object graph of VirtualMachineInstance tool: virtualmachineinstances/objectgraph" + served, "objectgraph --vmi tool"},
		{"Can't access VMI tool: virtualmachineinstances/usbredir" + served, "usbredir --no-launch tool"},
		{"could not get guestfs image info: the server could not find the requested resource", "guestfs extra"},
		{"the server could not find the requested resource (post virtualmachineexports.export.kubevirt.io)", "vmexport download tool --pvc=extra --output=tool.img"},
		{"could not detect a KubeVirt installation", "adm log-verbosity"},
	} {
		c.refuses(tt.want, strings.Fields(tt.command)...)
	}
	// What is left behind, and what waits.
	c.refuses("virtualmachines/memorydump"+served, "memory-dump", "get", "tool", "--claim-name=left", "--create-claim")
	c.kubectl("get", "pvc", "left")
	image := filepath.Join(t.TempDir(), "disk.img")
	require.NoError(t, os.WriteFile(image, make([]byte, 1<<20), 0o600))
	c.start("image-upload", "pvc", "upload", "--size=1Mi", "--image-path="+image).says("Waiting for PVC upload upload pod to be ready...")
	c.kubectl("get", "pvc", "upload")
	c.refuses("the server could not find the requested resource (post datavolumes.cdi.kubevirt.io)", "image-upload", "dv", "upload-dv", "--size=1Mi", "--image-path="+image)
	c.start("vmexport", "download", "none", "--output="+image+".gz").says("couldn't get VM Export none, waiting for it to be created...")
}

func virtctlRestart(t *testing.T, c virtctl) {
	before := c.get("tool").UID
	c.says("VM tool was scheduled to restart", "restart", "tool")
	v := c.next("tool", before)
	c.refuses("Must both use --force=true and set --grace-period.", "restart", "tool", "--force")
	c.says("VM tool was scheduled to restart", "restart", "tool", "--force", "--grace-period=0")
	v = c.next("tool", v.UID)
	c.says("VM tool was scheduled to stop", "stop", "tool")
	c.awaitGone(v)
	require.Equal(t, vmi.RunHalted, c.getVM("tool").Spec.Strategy())

	c.says("Dry Run execution\nVM tool was scheduled to start", "start", "tool", "--paused", "--dry-run")
	c.says("VM tool was scheduled to start", "start", "tool", "--paused")
	c.next("tool", v.UID)
	v = c.awaitPaused("tool", true)
	c.says("VM tool was scheduled to stop", "stop", "tool", "--force", "--grace-period=0")
	c.awaitGone(v)
	c.refuses("error force stopping VirtualMachine: "+conflict(aVM, "tool", "VM is not running"), "stop", "tool", "--force", "--grace-period=0")
}
