package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// process is a process of a pod on one of the nodes, as this host sees it.
type process struct {
	pid int
	// began is when it began, in ticks: with the number it names the process for ever.
	began string
	node  string
	pod   types.UID
	args  []string
	found time.Time
	// forked: it is the clone of a process and has not executed a program itself yet. What a
	// launcher or a libvirt daemon starts is called like them until then.
	forked bool
}

// role is what the process is in the pod: "sandbox", a program of a launcher or of Podvisor,
// "QEMU", or nothing that is looked for.
func (p process) role() string {
	if len(p.args) == 0 || p.forked {
		return ""
	}
	switch name := filepath.Base(p.args[0]); {
	case name == "pause":
		return "sandbox"
	case name == "virt-launcher" && slices.Contains(p.args, "--name"):
		return "virt-launcher"
	case name == "libvirtd", name == "virt-handler", name == "virt-controller":
		return name
	case strings.HasPrefix(name, "qemu-system-") && p.guest() != "":
		return "QEMU"
	}
	return ""
}

// guest is the name of the guest of a QEMU: the namespace and the name of the VMI.
func (p process) guest() string {
	for _, a := range p.args {
		if rest, ok := strings.CutPrefix(a, "guest="); ok {
			name, _, _ := strings.Cut(rest, ",")
			return name
		}
	}
	return ""
}

// receives reports whether the process is a QEMU that was started to receive a guest.
func (p process) receives() bool { return slices.Contains(p.args, "-incoming") }

// nodeWatch looks at the processes of the nodes all the time, and notes when a guest has two
// QEMUs of which the younger does not receive it, or a claim two writers.
type nodeWatch struct {
	group *regexp.Regexp // of a process in a pod

	mu    sync.Mutex
	now   map[int]process
	looks map[int]func([]process)
	next  int
	count int
	// longest is the longest time between two looks.
	longest time.Duration
	// wrong is what must not be, by the guest.
	wrong map[string]string
}

// watched is the watch of the nodes, which begins when it is first asked for.
var watched = sync.OnceValue(func() *nodeWatch { return watchNodes(context.Background()) })

// lookEvery is the time between two looks at the processes.
const lookEvery = 15 * time.Millisecond

func newNodeWatch() *nodeWatch {
	return &nodeWatch{
		group: regexp.MustCompile(`/` + plan.Cgroup(clusterName) + `/([^/]+)/.*pod([0-9a-f-]{36})`),
		now:   map[int]process{}, looks: map[int]func([]process){}, wrong: map[string]string{},
	}
}

// launchers are the processes of launchers on all nodes, by their pods, as one look sees them.
func launchers() map[types.UID]process {
	w := newNodeWatch()
	w.look()
	all := map[types.UID]process{}
	for _, p := range w.pods() {
		if p.role() == "virt-launcher" {
			all[p.pod] = p
		}
	}
	return all
}

// watchNodes looks until the context ends.
func watchNodes(ctx context.Context) *nodeWatch {
	w := newNodeWatch()
	go func() {
		// A look may not wait for the guests to rest: what it stops would have gone on meanwhile.
		runtime.LockOSThread()
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: -15}, 0); err != nil {
			fmt.Fprintf(os.Stderr, "processes are looked for at the priority of all others: %v\n", err)
		}
		for last := time.Now(); ctx.Err() == nil; time.Sleep(lookEvery) {
			w.look()
			w.mu.Lock()
			w.count, w.longest = w.count+1, max(w.longest, time.Since(last))
			w.mu.Unlock()
			last = time.Now()
		}
	}()
	return w
}

// each calls f with the processes of pods after each look, until end is called.
func (w *nodeWatch) each(f func([]process)) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	n := w.next
	w.looks[n] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.looks, n)
	}
}

// pods are the processes of pods at the last look.
func (w *nodeWatch) pods() (all []process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.now {
		if p.pod != "" {
			all = append(all, p)
		}
	}
	return all
}

// said is how often was looked, and what was wrong with guests whose names begin so.
func (w *nodeWatch) said(begin string) (count int, longest time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for guest, what := range w.wrong {
		if strings.HasPrefix(guest, begin) {
			err = errors.Join(err, errors.New(what))
		}
	}
	return w.count, w.longest, err
}

// settled reports whether a process does not become another one any more. One of a pod executes
// its program at last; a libvirt daemon clones itself for QEMU. One of no pod was moved into its
// group, if it ever is.
func (p process) settled() bool {
	if p.pod != "" {
		return p.role() != "" && p.role() != "libvirtd"
	}
	return time.Since(p.found) > 5*time.Second
}

func (w *nodeWatch) look() {
	w.mu.Lock()
	old := w.now
	w.mu.Unlock()
	all, now := w.read(old), map[int]process{}
	for _, p := range all {
		now[p.pid] = p
	}
	pods := slices.DeleteFunc(all, func(p process) bool { return p.pod == "" })
	wrong := w.judge(pods)
	w.mu.Lock()
	w.now = now
	maps.Copy(w.wrong, wrong)
	calls := slices.Collect(maps.Values(w.looks))
	w.mu.Unlock()
	for _, f := range calls {
		f(pods)
	}
}

// read reads the processes. What is known of old ones is not read again.
func (w *nodeWatch) read(known map[int]process) (all []process) {
	dir, err := os.Open("/proc")
	if err != nil {
		panic(err) // Linux has one
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, ok := known[pid]
		if !ok || !p.settled() {
			if p, ok = w.process(pid, p.found); !ok {
				continue
			}
		}
		all = append(all, p)
	}
	return all
}

// process reads one process. One that has ended is none, also while its parent does not know.
func (w *nodeWatch) process(pid int, found time.Time) (p process, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	began, state, flags := statOf(pid)
	if began == "" || state == "Z" {
		return p, false
	}
	if found.IsZero() {
		found = time.Now()
	}
	p = process{pid: pid, began: began, found: found, forked: flags&forkedNoExec != 0}
	text, _ := os.ReadFile(dir + "/cmdline")
	if len(text) == 0 {
		return p, true
	}
	p.args = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	groups, _ := os.ReadFile(dir + "/cgroup")
	if m := w.group.FindSubmatch(groups); m != nil {
		p.node, p.pod = string(m[1]), types.UID(m[2])
	}
	return p, true
}

// forkedNoExec is the flag PF_FORKNOEXEC of include/linux/sched.h.
const forkedNoExec = 0x40

// statOf is when a process began, in ticks, its state, and its flags (proc_pid_stat(5)).
func statOf(pid int) (began, state string, flags uint64) {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", "", 0
	}
	flags, _ = strconv.ParseUint(fields[6], 10, 64)
	return fields[19], fields[0], flags
}

// alive reports whether the process runs.
func (p process) alive() bool {
	began, state, _ := statOf(p.pid)
	return began == p.began && state != "Z" && state != "X"
}

// compare orders processes by their age.
func (p process) compare(other process) int {
	a, _ := strconv.ParseUint(p.began, 10, 64)
	b, _ := strconv.ParseUint(other.began, 10, 64)
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(p.pid, other.pid))
}

// judge says what is wrong: two QEMUs of a guest, or two that can write to one file of a claim.
func (w *nodeWatch) judge(pods []process) map[string]string {
	wrong := map[string]string{}
	guests, writers := map[string]process{}, map[string]process{}
	pods = slices.DeleteFunc(slices.Clone(pods), func(p process) bool { return p.role() != "QEMU" })
	slices.SortFunc(pods, process.compare)
	for _, p := range pods {
		if first, ok := guests[p.guest()]; ok && (!p.receives() || p.pod == first.pod) && first.alive() && p.alive() {
			wrong[p.guest()] = fmt.Sprintf("guest %s has two QEMUs: of pod %s on %s, and of pod %s on %s", p.guest(), first.pod, first.node, p.pod, p.node)
		}
		guests[p.guest()] = p
		for _, file := range p.writes() {
			// A guest may have left the first one since that was looked at. libvirt has both QEMUs of a
			// guest that moves open a raw file for writing. What the guest reads back says which did.
			if first, ok := writers[file]; ok && (!p.receives() || p.guest() != first.guest()) && slices.Contains(first.writes(), file) && first.alive() && p.alive() {
				wrong[p.guest()] = fmt.Sprintf("a claim has two writers: guest %s of pod %s, and guest %s of pod %s", first.guest(), first.pod, p.guest(), p.pod)
			}
			writers[file] = p
		}
	}
	return wrong
}

// writes are the disks in file systems of claims that the process has open for writing, by the
// numbers of their files.
func (p process) writes() (files []string) {
	dir := fmt.Sprintf("/proc/%d/fd/", p.pid)
	all, _ := os.ReadDir(dir) // it may end meanwhile
	for _, fd := range all {
		path, err := os.Readlink(dir + fd.Name())
		if err != nil || filepath.Base(path) != "disk.img" || strings.Contains(path, "ephemeral") {
			continue
		}
		// The mode of the link says how the file is open.
		info, err := os.Lstat(dir + fd.Name())
		var stat unix.Stat_t
		if err == nil && info.Mode()&0o200 != 0 && unix.Stat(dir+fd.Name(), &stat) == nil {
			files = append(files, fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
		}
	}
	return files
}

// program is the process of a program of a node, as this host sees it. 0: it does not run.
func program(node, name string) int {
	init, err := world.cluster.Node(node).PID()
	if err != nil {
		return 0
	}
	inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", init))
	if err != nil {
		return 0
	}
	all, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range all {
		comm, _ := os.ReadFile(file)
		if strings.TrimSpace(string(comm)) != name {
			continue
		}
		dir := filepath.Dir(file)
		if ns, err := os.Readlink(dir + "/ns/pid"); err == nil && ns == inside {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	return 0
}

// root is the root of the files of a node.
func root(node string) string {
	pid, err := world.cluster.Node(node).PID()
	if err != nil {
		return "/nonexistent"
	}
	return fmt.Sprintf("/proc/%d/root", pid)
}

// signal sends a signal to processes that may have ended.
func signal(s syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

func TestTwoQEMUsOfAGuestAndTwoWritersOfAClaimAreSeen(t *testing.T) {
	t.Parallel()
	disk := filepath.Join(t.TempDir(), "disk.img")
	qemu := func(guest string, flag int) process {
		f, err := os.OpenFile(disk, flag|os.O_CREATE, 0o600)
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), "sleep", "60")
		c.Stdin = f
		require.NoError(t, c.Start())
		require.NoError(t, f.Close())
		t.Cleanup(func() { _ = errors.Join(c.Process.Kill(), c.Wait()) })
		began, _, _ := statOf(c.Process.Pid)
		return process{pid: c.Process.Pid, began: began, args: []string{"/usr/bin/qemu-system-x86_64", "-name", "guest=" + guest + ",debug-threads=on"}}
	}
	a, b, reader := qemu("s_a", os.O_RDWR), qemu("s_b", os.O_RDWR), qemu("s_c", os.O_RDONLY)
	var w nodeWatch
	require.Empty(t, w.judge([]process{a, reader}))
	require.Contains(t, w.judge([]process{a, b})["s_b"], "a claim has two writers")
	again := reader
	again.args = a.args
	require.Contains(t, w.judge([]process{a, again})["s_a"], "guest s_a has two QEMUs")
	again.pod, again.args = "target", append(slices.Clone(a.args), "-incoming", "defer")
	require.Empty(t, w.judge([]process{again, a}), "the younger one receives the guest")
	target := b
	target.pod, target.args = "target", append(slices.Clone(a.args), "-incoming", "defer")
	require.Empty(t, w.judge([]process{target, a}), "both open its disk")
	target.args = append(slices.Clone(b.args), "-incoming", "defer")
	require.Contains(t, w.judge([]process{target, a})["s_b"], "a claim has two writers")
	again.args, a.args = a.args, again.args
	require.Contains(t, w.judge([]process{again, a})["s_a"], "guest s_a has two QEMUs")
	b.began = "0" // it has ended, and its number was given to another one
	require.Empty(t, w.judge([]process{a, b}))
}

func TestWhatAProgramForksIsNotTheProgram(t *testing.T) {
	t.Parallel()
	w := newNodeWatch()
	shell := exec.Command("sh", "-c", "exec 3<&0; (read x <&3) & wait; :")
	in, err := shell.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	t.Cleanup(func() { _ = in.Close(); _ = shell.Wait() })
	var child process
	eventually(t, soon, func() error {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", shell.Process.Pid))
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return err
		}
		child, _ = w.process(pid, time.Time{})
		return nil
	})
	parent, ok := w.process(shell.Process.Pid, time.Time{})
	require.True(t, ok)
	require.Equal(t, parent.args, child.args)
	require.False(t, parent.forked)
	require.True(t, child.forked)
	child.args = []string{"/usr/sbin/libvirtd"}
	require.Empty(t, child.role())
}
