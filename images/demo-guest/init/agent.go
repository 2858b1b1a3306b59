package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// agentChannel is the channel between the host and an agent.
	agentChannel = "org.qemu.guest_agent.0"
	// bootLabel is the volume label of the disk that the guest boots from.
	bootLabel = "boot"
	// laterFiles is the archive on it with what the guest boots without.
	laterFiles = "later.tgz"
)

// agent starts QEMU's agent if the guest has the channel for it. The agent is
// read from the disk only now, since in the initial RAM disk it would make every
// boot longer.
func (m *guest) agent() {
	port := agentPort()
	if port == "" || m.ending() {
		return
	}
	if err := m.unpackLater(); err != nil {
		m.must("unpack the guest agent", err)
		return
	}
	_, err := m.children.start(process{args: []string{"/usr/sbin/qemu-ga", "--method=virtio-serial", "--path=" + port, "--statedir=/run"}})
	m.must("start the guest agent", err)
}

// agentPort is the device of the agent's channel. Empty: the guest has none.
func agentPort() string {
	names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range names {
		if b, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(b)) == agentChannel {
			return "/dev/" + filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}

// unpackLater unpacks what the guest boots without.
func (m *guest) unpackLater() (err error) {
	device, kind := findVolume(bootLabel)
	if device == "" {
		return errors.New("there is no disk with the label " + bootLabel)
	}
	const dir = "/run/boot"
	if err := mountVolume(m.modules, device, kind, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, 0)) }()
	if err := m.children.run("tar", "-x", "-z", "-f", filepath.Join(dir, laterFiles), "-C", "/"); err != nil {
		return fmt.Errorf("unpack %s: %w", laterFiles, err)
	}
	return nil
}
