package images

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/debian"
	"github.com/podvisor/podvisor/internal/testenv"
)

const bootTimeout = 6 * time.Minute

// demo is a demo guest under a plain QEMU.
type demo struct {
	t       *testing.T
	monitor string
	input   io.Writer
	url     string
	ended   chan error

	mu   sync.Mutex
	said strings.Builder
	more chan struct{}
}

// start boots the demo guest with the files of a NoCloud disk.
func start(t *testing.T, seed map[string]string, args ...string) *demo {
	t.Helper()
	testenv.Root(t)
	require.NoError(t, debian.Ensure(t.Context(), t.Output(), "qemu-system-x86", "dosfstools", "mtools"))
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk.qcow2")
	require.NoError(t, os.WriteFile(disk, files(t, built(t, "demo-guest"))["/disk/demo-guest.qcow2"].Content, 0o644))
	d := &demo{t: t, monitor: filepath.Join(dir, "qmp"), ended: make(chan error, 1), more: make(chan struct{}, 1)}
	port := testenv.Port(t)
	d.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	args = append([]string{"-M", "q35", "-accel", "tcg,tb-size=32", "-cpu", "max", "-m", "128", "-nodefaults", "-display", "none",
		"-no-reboot", "-serial", "stdio", "-qmp", "unix:" + d.monitor + ",server=on,wait=off",
		"-drive", "file=" + disk + ",if=virtio,format=qcow2", "-drive", "file=" + seedDisk(t, dir, seed) + ",if=virtio,format=raw,readonly=on",
		"-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:127.0.0.1:%d-:80", port), "-device", "virtio-net-pci,netdev=net,romfile="}, args...)
	cmd := exec.Command("qemu-system-x86_64", args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	d.input = in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			d.record(lines.Text())
		}
		d.ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if t.Failed() {
			t.Log(d.console())
		}
	})
	return d
}

func (d *demo) record(line string) {
	d.mu.Lock()
	fmt.Fprintln(&d.said, line)
	d.mu.Unlock()
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *demo) console() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said.String()
}

// await waits for a line on the console.
func (d *demo) await(text string) {
	d.t.Helper()
	deadline := time.After(bootTimeout)
	for !strings.Contains(d.console(), text) {
		select {
		case <-d.more:
		case err := <-d.ended:
			d.ended <- err
			require.Contains(d.t, d.console(), text, "the guest ended: %v", err)
		case <-deadline:
			require.Contains(d.t, d.console(), text)
		}
	}
}

// off waits for the guest to end.
func (d *demo) off() {
	d.t.Helper()
	select {
	case err := <-d.ended:
		require.NoError(d.t, err)
	case <-time.After(bootTimeout):
		d.t.Fatal("the guest did not power off")
	}
}

// typeLine types on the console.
func (d *demo) typeLine(text string) {
	d.t.Helper()
	_, err := io.WriteString(d.input, text+"\n")
	require.NoError(d.t, err)
}

// get fetches a page from the guest.
func (d *demo) get(path string) string {
	d.t.Helper()
	r, err := http.Get(d.url + path)
	require.NoError(d.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusOK, r.StatusCode)
	return string(body)
}

// press presses the power button.
func (d *demo) press() {
	d.t.Helper()
	conn, err := net.Dial("unix", d.monitor)
	require.NoError(d.t, err)
	defer conn.Close()
	in := json.NewDecoder(conn)
	var greeting, answer map[string]any
	require.NoError(d.t, in.Decode(&greeting))
	for _, command := range []string{"qmp_capabilities", "system_powerdown"} {
		require.NoError(d.t, json.NewEncoder(conn).Encode(map[string]string{"execute": command}))
		require.NoError(d.t, in.Decode(&answer))
	}
}

// seedDisk makes a NoCloud disk with a FAT file system.
func seedDisk(t *testing.T, dir string, seed map[string]string) string {
	t.Helper()
	disk := filepath.Join(dir, "seed.img")
	require.NoError(t, os.WriteFile(disk, make([]byte, 1<<20), 0o644))
	args := []string{"-i", disk}
	for name, text := range seed {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		args = append(args, file)
	}
	_, err := run(t.Context(), dir, "/usr/sbin/mkfs.vfat", "-n", "CIDATA", disk)
	require.NoError(t, err)
	_, err = run(t.Context(), dir, "mcopy", append(args, "::")...)
	require.NoError(t, err)
	return disk
}

func TestTheDemoGuestDoesWhatItsSeedSaysAndPowersOffInOrder(t *testing.T) {
	t.Parallel()
	d := start(t, map[string]string{
		"meta-data": "instance-id: i-1\nlocal-hostname: from-meta-data\n",
		"user-data": `#cloud-config
hostname: demo
bootcmd:
- mkdir -p /www
write_files:
- path: /www/hello
  content: |
    two
    lines
- path: /www/hello
  append: true
  encoding: b64
  content: bW9yZQo=
- path: /www/cgi-bin/who
  permissions: '0755'
  content: |
    #!/bin/sh
    printf 'Content-Type: text/plain\r\n\r\n'
    hostname
runcmd:
- [sh, -c, "echo list > /www/list"]
- echo "string $(cut -d ' ' -f 2 /etc/resolv.conf)" > /www/string
packages: [nginx]
`,
	})
	d.await("podvisor-guest: user-data finished")
	require.Contains(t, d.console(), `podvisor-guest: cloud-init data of instance "i-1" on /dev/vd`)
	require.Contains(t, d.console(), "podvisor-guest: eth0 has address 10.0.2.15/24 from 10.0.2.2")
	require.Contains(t, d.console(), "podvisor-guest: ready, serving HTTP on port 80 as demo")
	require.Contains(t, d.console(), `podvisor-guest: user-data: "packages" is not supported, ignored`)
	require.Contains(t, d.get("/"), "Hello from demo")
	require.Equal(t, "two\nlines\nmore\n", d.get("/hello"))
	require.Equal(t, "demo\n", d.get("/cgi-bin/who"))
	require.Equal(t, "list\n", d.get("/list"))
	require.Equal(t, "string 10.0.2.3\n", d.get("/string"))
	require.Regexp(t, `^[0-9a-f-]{36}\n$`, d.get("/boot-id"))
	require.Regexp(t, `^\d+\.\d+\n$`, d.get("/cgi-bin/uptime"))
	d.press()
	d.off()
	require.Contains(t, d.console(), "podvisor-guest: power button pressed, shutting down in order")
	require.Contains(t, d.console(), "podvisor-guest: powering off")
}

func TestTheDemoGuestTakesAStaticAddressAndCanBeDeafToThePowerButton(t *testing.T) {
	t.Parallel()
	d := start(t, map[string]string{
		"meta-data":      `{"instance-id": "i-2", "local-hostname": "deaf"}`,
		"user-data":      "#cloud-config\nwrite_files:\n- path: /etc/podvisor-guest/ignore-power-button\n",
		"network-config": "version: 2\nethernets:\n  eth0:\n    addresses: [10.0.2.77/24]\n    gateway4: 10.0.2.2\n",
	})
	d.await("podvisor-guest: ready, serving HTTP on port 80 as deaf")
	require.Contains(t, d.console(), "podvisor-guest: eth0 has address 10.0.2.77/24 from network-config")
	d.press()
	d.await("podvisor-guest: power button pressed, ignored")
}

func TestTheDemoGuestRunsAScriptAndPoweroffEndsItInOrder(t *testing.T) {
	t.Parallel()
	d := start(t, map[string]string{
		"meta-data": "instance-id: i-3\n",
		"user-data": "#!/bin/sh\necho the script runs as $(id -u)\npoweroff\n",
	})
	d.off()
	require.Contains(t, d.console(), "the script runs as 0")
	require.Contains(t, d.console(), "podvisor-guest: asked to power off, shutting down in order")
	require.Contains(t, d.console(), "podvisor-guest: powering off")
}

func TestTheDemoGuestHasAShellOnItsConsole(t *testing.T) {
	t.Parallel()
	d := start(t, map[string]string{"meta-data": "instance-id: i-4\nlocal-hostname: shell\n"})
	d.await("podvisor-guest: press Enter for a root shell")
	d.typeLine("")
	d.typeLine("echo $((6*7)) is the answer")
	d.await("42 is the answer")
	d.typeLine("poweroff")
	d.off()
	require.Contains(t, d.console(), "podvisor-guest: powering off")
}

func TestTheDemoGuestHasAnAgent(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "agent")
	d := start(t, map[string]string{"meta-data": "instance-id: i-5\n"},
		"-device", "virtio-serial", "-chardev", "socket,id=agent,server=on,wait=off,path="+socket,
		"-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0")
	d.await("podvisor-guest: ready")
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(bootTimeout)))
	_, err = io.WriteString(conn, `{"execute":"guest-info"}`)
	require.NoError(t, err)
	var answer struct{ Return struct{ Version string } }
	require.NoError(t, json.NewDecoder(conn).Decode(&answer))
	require.Regexp(t, `^7\.2\.\d+$`, answer.Return.Version)
	d.press()
	d.off()
	require.Contains(t, d.console(), "podvisor-guest: powering off")
}
