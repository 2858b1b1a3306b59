package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// probeTimeout is how long libvirt may take to find out what QEMU can do.
const probeTimeout = time.Minute

// addCapabilities lets the image's own libvirt daemon ask the image's QEMU what it
// can do, and puts the answer into the folder dir of the image. libvirt calls the
// file after a hash of QEMU's path, so it fits wherever the image runs; the times in
// it do not, and the launcher writes those of its pod into a copy.
//
// There is no /dev/kvm in the chroot: an answer with KVM would be wrong where
// there is none, and libvirt asks again where there is one.
func (c *cache) addCapabilities(ctx context.Context, image tree, dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("asking libvirt for its QEMU's capabilities needs root")
	}
	c.say("  asking libvirt what its QEMU can do")
	root, err := os.MkdirTemp("", "podvisor-root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil {
		return err
	}
	if err := image.writeDir(root); err != nil {
		return err
	}
	files, err := probe(ctx, root)
	if err != nil {
		return err
	}
	for name, content := range files {
		image.add(filepath.Join(dir, name), node{Mode: 0o644, Content: timeless(content)})
	}
	return nil
}

// timeless takes out of libvirt's answer what is of this host and this moment. The
// times of files are written in the pod. That of the folder with QEMU's modules is 0
// in an image, for which libvirt writes no element at all.
func timeless(capabilities []byte) []byte {
	b := regexp.MustCompile(`<(qemuctime|selfctime)>\d+<`).ReplaceAll(capabilities, []byte("<$1>0<"))
	return regexp.MustCompile(`\s*<qemumoddirmtime>\d+</qemumoddirmtime>`).ReplaceAll(b, nil)
}

// probe starts libvirtd in a root and returns the files of its cache.
func probe(ctx context.Context, root string) (map[string][]byte, error) {
	const home = "/tmp/libvirt"
	cacheDir := filepath.Join(root, home, "libvirt", "qemu", "cache", "capabilities")
	if err := prepareProbe(root, home); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := daemon(ctx, root, home)
	said, err := os.Create(filepath.Join(root, "tmp", "log"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start libvirtd of the image: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cancel()
		<-ended
	}()
	return awaitFiles(ctx, cacheDir, ended, said.Name())
}

// daemon is the command of libvirtd in a root that prepareProbe has prepared, as the
// user that it is in a pod and without any capability.
func daemon(ctx context.Context, root, home string) *exec.Cmd {
	// Namespaces of its own: /proc and /sys are mounted for this alone, the daemon and QEMU go
	// with the shell, and nothing reaches a network. The shell stays as process 1
	// because QEMU, a daemon here, becomes its child: libvirt waits twenty seconds for
	// a QEMU that has ended and is not reaped.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "sh", "-ec",
		`mount -t proc proc "$0/proc"; mount -t sysfs -o ro sys "$0/sys"; setpriv --no-new-privs chroot --userspec="$1" "$0" /usr/sbin/libvirtd & wait $!`,
		root, fmt.Sprintf("%d:%[1]d", diskOwner))
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "XDG_CONFIG_HOME=" + home,
		"XDG_CACHE_HOME=" + home, "XDG_DATA_HOME=" + home, "XDG_STATE_HOME=" + home}
	return cmd
}

// awaitFiles waits for the daemon to write its cache, which it does in one rename.
func awaitFiles(ctx context.Context, dir string, ended chan error, log string) (map[string][]byte, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		names, _ := filepath.Glob(filepath.Join(dir, "*.xml"))
		files := map[string][]byte{}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files[filepath.Base(name)] = b
		}
		if len(files) > 0 {
			return files, nil
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(log)
			return nil, errors.Join(fmt.Errorf("libvirtd of the image ended:\n%s", text), err)
		case <-ctx.Done():
			text, _ := os.ReadFile(log)
			return nil, fmt.Errorf("libvirtd of the image wrote no capabilities: %w\n%s", ctx.Err(), text)
		case <-tick.C:
		}
	}
}

// prepareProbe makes what the daemon needs besides the image.
func prepareProbe(root, home string) error {
	for _, d := range []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}} {
		file := filepath.Join(root, "dev", d.name)
		if err := syscall.Mknod(file, syscall.S_IFCHR|0o666, int(d.major<<8|d.minor)); err != nil {
			return fmt.Errorf("make device %s: %w", file, err)
		}
		if err := os.Chmod(file, 0o666); err != nil {
			return err
		}
	}
	dir := filepath.Join(root, home)
	if err := os.MkdirAll(filepath.Join(dir, "libvirt", "qemu"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"libvirt/libvirtd.conf": "listen_tls = 0\nlisten_tcp = 0\nauth_unix_rw = \"none\"\nlog_outputs = \"2:stderr\"\n",
		"libvirt/qemu.conf":     "stdio_handler = \"file\"\ncgroup_controllers = []\nsecurity_driver = \"none\"\nnamespaces = []\n",
		// Reading the definition of a domain makes the daemon ask QEMU at its start,
		// without a client.
		"libvirt/qemu/probe.xml": "<domain type='qemu'><name>probe</name><uuid>5ef4ae3c-0a54-4c3f-9b87-6f3f1f4d7a01</uuid><memory>65536</memory>" +
			"<os><type arch='x86_64' machine='q35'>hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator></devices></domain>\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return filepath.Walk(dir, func(name string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Chown(name, diskOwner, diskOwner))
	})
}
