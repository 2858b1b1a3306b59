package process

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// status is what /proc says of a process.
type status struct {
	state           byte // Z: it is dead, T: a signal has stopped it
	parent, session int
}

// statusOf reads the status of a process. False: there is none.
func statusOf(pid int) (status, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return status{}, false
	}
	// pid (command) state parent group session …; the command may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 4 {
		return status{}, false
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	session, _ := strconv.Atoi(string(fields[3]))
	return status{state: fields[0][0], parent: parent, session: session}, true
}

// processes are the IDs of all processes that can be read.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // what was read counts
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// clearTimeout is how long processes that were killed may take to end.
const clearTimeout = 2 * time.Second

// clear kills what a daemon has left that has ended: the commands of its session, whose
// output no process reads, and each QEMU that it asked what it can do, which has left that
// session. The QEMUs of domains go on. It returns when they have ended, or after clearTimeout.
func (d *Daemon) clear(session int) {
	var left []int
	for end := time.Now().Add(clearTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if left = d.left(session); len(left) == 0 {
			return
		}
		for _, pid := range left {
			d.config.Logger.Debug("killed what the libvirt daemon has left", "pid", pid, "err", unix.Kill(pid, unix.SIGKILL))
		}
	}
	d.config.Logger.Warn("what the libvirt daemon has left does not end", "pids", left)
}

// left are the processes that a daemon of a session has left. They are children of this
// process by now, or will be when their parents have ended.
func (d *Daemon) left(session int) []int {
	asked := []byte(d.folder("conf/libvirt/qemu/lib/qmp-"))
	var left []int
	for _, pid := range processes() {
		s, ok := statusOf(pid)
		if !ok || s.state == 'Z' || s.parent != d.config.Reaper.self {
			continue
		}
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // none: it has ended
		if s.session == session || bytes.Contains(line, asked) {
			left = append(left, pid)
		}
	}
	return left
}
