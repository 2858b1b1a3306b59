package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// aMinute limits how long the status of a VMI does not show that its handler or
// node is gone: a minute, and another for a busy host or a leader that is new.
const aMinute = 2 * time.Minute

// awaitReady waits until the VMI's Ready condition has the status and the reason.
func (s space) awaitReady(name string, limit time.Duration, status metav1.ConditionStatus, reason string) vmi.Condition {
	s.t.Helper()
	return s.awaitCondition(name, limit, vmi.ConditionReady, status, reason)
}

// awaitCondition waits until the VMI has the condition, with the status and the
// reason.
func (s space) awaitCondition(name string, limit time.Duration, t vmi.ConditionType, status metav1.ConditionStatus, reason string) vmi.Condition {
	s.t.Helper()
	var found vmi.Condition
	eventually(s.t, limit, func() error {
		v := s.get(name)
		c := v.Status.Condition(t)
		if c == nil || string(c.Status) != string(status) || c.Reason != reason {
			return fmt.Errorf("%s is %s; condition %s is not %s with reason %q: %+v", name, v.Status.Phase, t, status, reason, v.Status.Conditions)
		}
		found = *c
		return nil
	})
	return found
}

// freezeLauncher stops the launcher of the VMI with this name as soon as it runs on
// the node, and returns its process there.
func (n traces) freezeLauncher(name string) string {
	n.t.Helper()
	return strings.TrimSpace(n.run(`for i in $(seq 6000); do
		if p=$(pgrep -o -f "^/usr/bin/virt-launcher --name ` + name + ` "); then kill -STOP $p && echo $p && exit 0; fi
		sleep 0.01
	done; exit 1`))
}

func onNode(name string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.NodeSelector = map[string]string{corev1.LabelHostname: name}
	}
}

func TestALauncherThatHangsBeforeItsGuestRunsIsSaidAndEndsFailed(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	n := traces{t: t, node: "n1"}
	var pid string
	v := s.inTime("hung", func(name string) *vmi.VirtualMachineInstance {
		v := s.create(guest(name, cloudConfig("hostname: hung"), onNode("n1")))
		pid = n.freezeLauncher(name)
		s.awaitCondition(name, soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "LauncherUnresponsive")
		return v
	}, func() { n.run("kill -CONT " + pid) })
	require.NotEqual(t, vmi.PhaseRunning, s.get(v.Name).Status.Phase)
	s.endTurn()
	eventually(t, 4*time.Minute, func() error {
		v = s.get(v.Name)
		if v.Status.Phase != vmi.PhaseFailed {
			return fmt.Errorf("%s is %s: %+v", v.Name, v.Status.Phase, v.Status.Conditions)
		}
		return nil
	})
	require.Equal(t, "LauncherUnresponsive", v.Status.Reason)
	s.delete(v.Name)
	s.awaitGone(v)
}

// inTime makes VMIs until a process of one is stopped before its guest runs: on a busy host the
// one who stops it may come too late. Undo lets the process of such a VMI go on.
func (s space) inTime(name string, stopped func(name string) *vmi.VirtualMachineInstance, undo func()) *vmi.VirtualMachineInstance {
	s.t.Helper()
	for n := 1; ; n++ {
		v := stopped(fmt.Sprint(name, "-", n))
		if s.get(v.Name).Status.Phase != vmi.PhaseRunning {
			return v
		}
		require.Less(s.t, n, 10, "the process is always stopped too late")
		undo()
		s.delete(v.Name)
		s.awaitGone(v)
	}
}

func TestALibvirtDaemonThatHangsFromItsStartIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.endTurn() // nothing boots
	first := make(chan process, 1)
	pods := map[types.UID]bool{} // one daemon of each
	end := watched().each(func(all []process) {
		for _, l := range all {
			if l.role() != "virt-launcher" || !slices.Contains(l.args, s.name) || pods[l.pod] {
				continue
			}
			for _, d := range all {
				if d.pod == l.pod && d.role() == "libvirtd" && !pods[l.pod] {
					signal(syscall.SIGSTOP, d.pid)
					pods[l.pod] = true
					first <- d
				}
			}
		}
	})
	defer end()
	var daemon process
	v := s.inTime("hangs", func(name string) *vmi.VirtualMachineInstance {
		v := s.create(idle(name))
		s.awaitCondition(name, soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "LibvirtUnavailable")
		daemon = <-first
		return v
	}, func() { signal(syscall.SIGCONT, daemon.pid) })
	require.Equal(t, vmi.PhaseScheduled, s.get(v.Name).Status.Phase)
	s.awaitEvent(v, "SyncFailed")
	s.awaitPhase(v.Name, vmi.PhaseRunning)
	s.awaitReady(v.Name, soon, metav1.ConditionTrue, "")
	require.Nil(t, s.get(v.Name).Status.Condition(vmi.ConditionSynchronized))
	require.False(t, daemon.alive(), "the daemon was replaced")
	s.delete(v.Name)
	s.awaitGone(v)
}

func TestALauncherThatHangsWhileItsGuestRunsIsSaidAndTakenBack(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("stuck", cloudConfig("hostname: stuck")))
	v := s.awaitSteady("stuck")
	n := s.traces(v)
	pid, _, _ := strings.Cut(n.process("/usr/bin/virt-launcher --name stuck"), " ")
	n.run("kill -STOP " + pid)
	s.awaitReady("stuck", soon, metav1.ConditionFalse, "LauncherUnresponsive")
	s.awaitCondition("stuck", soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "LauncherUnresponsive")
	require.Equal(t, vmi.PhaseRunning, s.get("stuck").Status.Phase)
	n.run("kill -CONT " + pid)
	s.awaitReady("stuck", soon, metav1.ConditionTrue, "")
	require.Nil(t, s.get("stuck").Status.Condition(vmi.ConditionSynchronized))
	s.delete("stuck")
	s.awaitGone(v)
}

// fullDisk starts a VMI whose guest writes more to its empty disk than there is
// room for, and returns the launcher's process on the node. On a busy host the launcher may
// be stopped while it writes the disk, or when QEMU has it: then it makes another VMI.
func (s space) fullDisk(name string) (v *vmi.VirtualMachineInstance, n traces, launcher string) {
	s.t.Helper()
	n = traces{t: s.t, node: "n2"}
	for i := 1; ; i++ {
		v = s.create(guest(fmt.Sprint(name, "-", i), cloudConfig(
			"hostname: "+name,
			"runcmd:",
			"- dd if=/dev/zero of=/dev/disk/by-id/virtio-scratch bs=1M count=48 || dd if=/dev/zero of=/dev/vdc bs=1M count=48",
			"- sync",
			"- echo wrote all of it > /dev/console",
		), vmitest.WithEmptyDisk("scratch", "64Mi"), vmitest.WithGracePeriod(2400), onNode(n.node)))
		launcher = n.freezeLauncher(v.Name)
		// /var/run is a link to /run, which would be followed in the root of the node.
		disks := "/proc/" + launcher + "/root" + strings.TrimPrefix(vmi.EphemeralDisksDir, "/var")
		// What it has made already is put there too, unless it is being written or QEMU has it.
		state := strings.TrimSpace(n.run(`set -e
			copy=$(mktemp -d) disks=` + disks + `
			if find /proc/` + launcher + `/fd -lname '*kubevirt-ephemeral-disks*' | grep -q . || pgrep -P ` + launcher + ` qemu-img >/dev/null; then echo written; exit; fi
			cp -a $disks/. $copy/
			mount -N ` + launcher + ` -t tmpfs -o size=16m,uid=107,gid=107,mode=0755 tmpfs ` + vmi.EphemeralDisksDir + `
			cp -a $copy/. $disks/
			rm -rf $copy
			if pgrep -f "gues[t]=` + s.name + `_` + v.Name + `," >/dev/null; then echo run; fi`))
		if state == "" {
			n.run("kill -CONT " + launcher)
			return v, n, launcher
		}
		require.Less(s.t, i, 10, "the launcher is always stopped too late: its disks are %s", state)
		n.run("kill -KILL " + launcher)
		s.delete(v.Name)
		s.awaitGone(v)
	}
}

func TestAGuestPausedByAFullDiskSaysSoAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v, n, launcher := s.fullDisk("full")
	c := s.awaitCondition(v.Name, long, vmi.ConditionPaused, metav1.ConditionTrue, "PausedIOError")
	require.Contains(t, c.Message, "scratch", "the volume is named")
	s.awaitReady(v.Name, soon, metav1.ConditionFalse, "GuestNotRunning")
	require.Contains(t, s.awaitEvent(v, "IOerror").Message, "scratch")
	require.Equal(t, vmi.PhaseRunning, s.get(v.Name).Status.Phase)
	n.run("mount -N " + launcher + " -o remount,size=128m " + vmi.EphemeralDisksDir)
	s.awaitConsole(v, "wrote all of it")
	s.awaitReady(v.Name, soon, metav1.ConditionTrue, "")
	require.Nil(t, s.get(v.Name).Status.Condition(vmi.ConditionPaused))
	s.delete(v.Name)
	s.awaitGone(v)
}

func TestAPausedGuestIsSwitchedOffAtOnceWhenItsVMIIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v, _, _ := s.fullDisk("paused")
	s.awaitCondition(v.Name, long, vmi.ConditionPaused, metav1.ConditionTrue, "PausedIOError")
	require.Greater(t, v.GracePeriod(), long, "it is not waited for")
	s.delete(v.Name)
	eventually(t, long, func() error {
		if pods := s.pods(v); len(pods) != 0 {
			return fmt.Errorf("pod %s is still there", pods[0].Name)
		}
		return nil
	})
	s.awaitGone(v)
}

func TestVolumesMayHaveTheNamesThatThePodUsesItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("names", cloudConfig("hostname: names"),
		vmitest.WithEmptyDisk("private", "1Mi"), vmitest.WithEmptyDisk("volume-private", "1Mi"),
		vmitest.WithContainerDisk("sockets", images.Reference("demo-guest")), vmitest.WithContainerDisk("volume-sockets", images.Reference("demo-guest")), vmitest.WithContainerDisk("tmp", images.Reference("demo-guest"))))
	v := s.awaitPhase("names", vmi.PhaseRunning)
	require.Len(t, v.Status.VolumeStatus, 7)
	s.awaitConsole(v, ready)
	s.delete("names")
	s.awaitGone(v)
}

// injector is a policy that puts a container before all others of the pods with the
// label e2e-inject, as a service mesh's webhook may.
const injector = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  matchConditions:
  - {name: is-labelled, expression: 'object.metadata.?labels["e2e-inject"].orValue("") == "NAME"'}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/containers/0", value: Object.spec.containers{
        name: "injected", image: "IMAGE", imagePullPolicy: "IfNotPresent", command: ["sleep", "3600"],
        securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false,
        capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`

// inject puts a container before the launcher's in the pods labelled
// e2e-inject=<the namespace>, and permits its image beside launchers, until the test
// ends. A pod that is refused before both are in force is made again.
func (s space) inject() {
	s.t.Helper()
	text := strings.NewReplacer("NAME", s.name, "IMAGE", images.Reference("tools")).Replace(injector)
	_, err := world.kubectl.RunInput(s.t.Context(), strings.NewReader(text), "apply", "-f", "-")
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		_, err := world.kubectl.RunInput(context.Background(), strings.NewReader(text), "delete", "-f", "-")
		require.NoError(s.t, err)
	})
	permit := func(ctx context.Context, images string) error {
		_, err := world.kubectl.Run(ctx, "patch", "validatingadmissionpolicy", "virt-controller.kubevirt.io", "--type=json", "-p",
			`[{"op":"test","path":"/spec/variables/1/name","value":"sidecars"},{"op":"replace","path":"/spec/variables/1/expression","value":"`+images+`"}]`)
		return err
	}
	require.NoError(s.t, permit(s.t.Context(), "['"+images.Reference("tools")+"']"))
	s.t.Cleanup(func() { require.NoError(s.t, permit(context.Background(), "[]")) })
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"e2e-inject": s.name}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "c", Image: images.Reference("tools"),
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	// A policy is in force some seconds after it was written.
	eventually(s.t, soon, func() error {
		p, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && len(p.Spec.Containers) != 2 {
			err = fmt.Errorf("the policy is not in force: %d containers", len(p.Spec.Containers))
		}
		return err
	})
}

func TestAContainerThatIsPutBeforeTheLaunchersChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.inject()
	labelled := guest("injected", cloudConfig("hostname: injected"))
	labelled.Labels["e2e-inject"] = s.name
	s.create(labelled)
	v := s.awaitPhase("injected", vmi.PhaseRunning)
	p := s.pod(v)
	require.Equal(t, "injected", p.Spec.Containers[0].Name)
	require.Equal(t, vmi.ComputeContainer, p.Spec.Containers[1].Name)
	require.Equal(t, p.Spec.Containers[1].Image, v.Status.LauncherContainerImageVersion)
	s.awaitReady("injected", long, metav1.ConditionTrue, "")
	s.delete("injected")
	s.awaitGone(v)
}

// The tests below take a component from all VMIs of a node, so none runs beside
// another test.

func TestAVMIWhoseNodeHasNoHandlerSaysSo(t *testing.T) {
	s := newSpace(t)
	s.create(guest("old", cloudConfig("hostname: old"), onNode("n2")))
	v := s.awaitSteady("old")
	n := traces{t: t, node: "n2"}
	var launcher string
	waits := s.inTime("new", func(name string) *vmi.VirtualMachineInstance {
		v := s.create(guest(name, cloudConfig("hostname: new"), onNode("n2")))
		launcher = n.freezeLauncher(name)
		s.awaitCondition(name, soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "LauncherUnresponsive")
		return v
	}, func() { n.run("kill -CONT " + launcher) }).Name
	back := s.removeHandler("n2")

	c := s.awaitReady("old", aMinute, metav1.ConditionFalse, "HandlerNotReady")
	require.Contains(t, c.Message, "n2")
	require.Equal(t, vmi.PhaseRunning, s.get("old").Status.Phase, "the guest still runs")
	s.awaitReady(waits, aMinute, metav1.ConditionFalse, "HandlerNotReady")
	require.Equal(t, vmi.PhaseScheduled, s.get(waits).Status.Phase)
	s.create(guest("later", cloudConfig("hostname: later"), onNode("n2")))
	s.awaitCondition("later", soon, vmi.ConditionPodScheduled, metav1.ConditionFalse, "Unschedulable")

	n.run("kill -CONT " + launcher)
	back()
	for _, name := range []string{"old", waits, "later"} {
		s.awaitPhase(name, vmi.PhaseRunning)
		s.awaitReady(name, long, metav1.ConditionTrue, "")
	}
	for _, name := range []string{waits, "later", "old"} {
		s.delete(name)
	}
	s.awaitGone(v)
}

// removeHandler removes the handler of a node, and keeps it away until the
// function that it returns is called.
func (s space) removeHandler(node string) (back func()) {
	s.t.Helper()
	ctx := context.Background()
	patch := func(kind, data string) {
		s.t.Helper()
		_, err := world.kubectl.Run(ctx, "-n", install.Namespace, "patch", "daemonset/virt-handler", "--type="+kind, "-p", data)
		require.NoError(s.t, err)
	}
	was, err := world.kubectl.Run(ctx, "-n", install.Namespace, "get", "daemonset/virt-handler", "-o", "jsonpath={.spec.template.spec.affinity}")
	require.NoError(s.t, err)
	// The handlers of other nodes stay as they are.
	patch("merge", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	patch("merge", `{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
		{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"NotIn","values":["`+node+`"]}]}]}}}}}}}`)
	done := false
	back = func() {
		if done {
			return
		}
		done = true
		patch("merge", `{"spec":{"template":{"spec":{"affinity":`+was+`}}}}`)
		patch("merge", `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"10%"}}}}`)
		_, err := world.kubectl.Run(ctx, "-n", install.Namespace, "rollout", "status", "daemonset/virt-handler", "--timeout=300s")
		require.NoError(s.t, err)
	}
	s.t.Cleanup(back)
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubevirt.io=virt-handler", FieldSelector: "spec.nodeName=" + node})
		if err == nil && len(l.Items) != 0 {
			err = fmt.Errorf("%s is still there", l.Items[0].Name)
		}
		return err
	})
	return back
}

// disconnect keeps what is on the node from the API server, until the function
// that it returns is called or the test ends. Pods are not touched.
func (n traces) disconnect() (connect func()) {
	n.t.Helper()
	route := plan.ControlPlane.Addr().String() + "/32"
	n.run("ip route add blackhole " + route)
	connected := false
	connect = func() {
		if connected {
			return
		}
		connected = true
		out, err := world.cluster.Node(n.node).Command(context.Background(), "ip", "route", "del", "blackhole", route).CombinedOutput()
		require.NoError(n.t, err, "%s", out)
	}
	n.t.Cleanup(connect)
	return connect
}
