//go:build release

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/e2e/release"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/version"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// side is one of the two versions.
type side struct {
	name string
	// install is how it is installed.
	install install.Config
	// reference names the image of a component.
	reference func(component string) string
}

// thisSide is the version of the working tree, which is installed when the tests begin.
func thisSide() side {
	return side{"this version", install.Config{
		Kubectl: world.kubectl, Manifests: "../manifests", Reference: images.Reference, Emulation: true, Content: images.Content(world.built), Force: true, Out: os.Stdout,
	}, images.Reference}
}

// earlierSide builds the version of the commit or tag, in a worktree of git and with a
// cache of its own, and puts its images on the nodes.
func earlierSide(t *testing.T, commit string) side {
	t.Helper()
	e, err := release.BuildEarlier(t.Context(), "..", commit, filepath.Join(t.TempDir(), "earlier"), images.Components()...)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.NoError(t, err)
	reference := func(component string) string { return "localhost/podvisor/" + component + ":earlier" }
	var content []string
	for _, component := range images.Components() {
		img, err := tarball.ImageFromPath(e.Tars[component], nil)
		require.NoError(t, err)
		digest, err := img.Digest()
		require.NoError(t, err)
		tag, err := name.NewTag(reference(component))
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), component+".tar")
		require.NoError(t, tarball.WriteToFile(file, tag, img))
		require.NoError(t, world.cluster.Load(t.Context(), file))
		content = append(content, digest.Hex[:8])
	}
	return side{"version " + commit, install.Config{
		Kubectl: world.kubectl, Manifests: filepath.Join(e.Tree, "manifests"), Overlays: "../manifests/overlays", Reference: reference, Emulation: true,
		Content: strings.Join(content, "-"), Force: true, Out: os.Stdout,
	}, reference}
}

// begin applies the manifests of the version so that the first virt-controller of it runs
// beside those of the other one, and stays there alone of its version until end. When it
// returns, the virt-handlers are of the version, and the kubelets offer what they gave them:
// while one is replaced, no VMI can be placed on its node.
func (s space) begin(to side) {
	s.t.Helper()
	// A pod that is ready counts for the rollout an hour later only.
	s.hold(3600)
	dir, err := install.Overlay(to.install)
	defer os.RemoveAll(dir)
	require.NoError(s.t, err)
	// How long webhooks may take is what the suite has said: see [install.Slow].
	said, err := world.kubectl.Run(s.t.Context(), "apply", "--server-side", "--force-conflicts", "-k", dir)
	require.NoError(s.t, err, said)
	s.kubectl("-n", install.Namespace, "rollout", "status", "daemonset/virt-handler", "--timeout=300s")
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		offering := slices.DeleteFunc(l.Items, func(n corev1.Node) bool {
			return n.Status.Allocatable.Name(vmi.TunResource, resource.DecimalSI).IsZero()
		})
		if len(offering) != 2 {
			return fmt.Errorf("%d of 2 nodes offer %s", len(offering), vmi.TunResource)
		}
		return nil
	})
	s.awaitMixed(to)
}

// end removes the hold, and returns when the rollout has ended.
func (s space) end(to side) {
	s.t.Helper()
	s.hold(0)
	require.NoError(s.t, install.Install(s.t.Context(), to.install))
	s.controllers()
}

// hold sets for how long a virt-controller is ready before it counts for a rollout.
func (s space) hold(seconds int) {
	s.t.Helper()
	_, err := world.kube.AppsV1().Deployments(install.Namespace).Patch(s.t.Context(), "virt-controller", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"minReadySeconds":%d,"progressDeadlineSeconds":%d}}`, seconds, seconds+600), metav1.PatchOptions{FieldManager: "test-release"})
	require.NoError(s.t, err)
}

// awaitMixed waits until two virt-controllers of the one version and one of the other are
// ready, and returns which versions they have: true for the version to.
func (s space) awaitMixed(to side) map[string]bool {
	s.t.Helper()
	var is map[string]bool
	eventually(s.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: "kubevirt.io=virt-controller"})
		if err != nil {
			return err
		}
		is = map[string]bool{}
		for _, p := range l.Items {
			if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				is[p.Name] = p.Spec.Containers[0].Image == to.reference("virt-controller")
			}
		}
		n := 0
		for _, new := range is {
			if new {
				n++
			}
		}
		if len(is) != 3 || n != 1 {
			return fmt.Errorf("want one virt-controller of %s beside two others, have %v", to.name, is)
		}
		return nil
	})
	return is
}

// leads reports whether the virt-controller that leads is of the version to.
func (s space) leads(to side) (leader string, new bool) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		is := s.awaitMixed(to)
		lease, err := world.kube.CoordinationV1().Leases(install.Namespace).Get(s.t.Context(), "virt-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity != nil {
			leader = *lease.Spec.HolderIdentity
		}
		var ok bool
		if new, ok = is[leader]; !ok {
			return fmt.Errorf("%q leads, which is none of %v", leader, is)
		}
		return nil
	})
	return leader, new
}

// startsWhileBothRun requires that VMIs start while two versions answer the webhook of
// pods, whichever of them leads, and that neither refuses the other's.
func (s space) startsWhileBothRun(to side) {
	s.t.Helper()
	began := map[bool]time.Duration{}
	for tries := 0; len(began) < 2; tries++ {
		require.Less(s.t, tries, 20, "the lead did not change")
		leader, new := s.leads(to)
		if _, done := began[new]; done {
			require.NoError(s.t, world.kube.CoreV1().Pods(install.Namespace).Delete(s.t.Context(), leader, metav1.DeleteOptions{}))
			eventually(s.t, long, func() error {
				if now, _ := s.leads(to); now == leader {
					return fmt.Errorf("%s leads still", leader)
				}
				return nil
			})
			continue
		}
		// Several: the API server asks one replica for all reviews of a connection.
		start := time.Now()
		for i := range 3 {
			name := fmt.Sprintf("mixed-%d-%d", tries, i)
			v := s.create(guest(name, cloudConfig("hostname: "+name), vmitest.WithGracePeriod(0)))
			s.awaitPhase(name, vmi.PhaseRunning)
			for _, e := range s.events(v) {
				require.False(s.t, e.Type == corev1.EventTypeWarning && !strings.Contains(e.Message, "another build of virt-controller"), "%s: %s", e.Reason, e.Message)
			}
			s.delete(name)
			s.awaitGone(v)
		}
		began[new] = time.Since(start) / 3
	}
	s.t.Logf("while both run, a VMI starts and ends in %.1f s where %s leads, and in %.1f s where the other one does", began[true].Seconds(), to.name, began[false].Seconds())
}

// resident is a guest that runs while versions change.
type resident struct {
	v    *vmi.VirtualMachineInstance
	pod  corev1.Pod
	boot string
}

// settles notes what must stay of a guest that runs.
func (u user) settles(name string) resident {
	u.t.Helper()
	v := u.awaitSteady(name)
	// The guest starts its shell at the first key.
	c := u.console(name)
	c.shows("root@", "\r")
	require.NoError(u.t, c.stream.Close())
	return resident{v, u.pod(v), u.bootOf(name)}
}

// bootOf is the boot of the guest, asked through virt-controller, virt-handler and
// virt-launcher.
func (u user) bootOf(name string) string {
	u.t.Helper()
	var page string
	eventually(u.t, long, func() error {
		c, err := u.vmis.PortForward(name)(u.t.Context(), "tcp", ":80")
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(soon)); err != nil {
			return err
		}
		if _, err := fmt.Fprint(c, "GET /boot-id HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		var all bytes.Buffer
		_, err = all.ReadFrom(c)
		head, body, ok := strings.Cut(all.String(), "\r\n\r\n")
		if !ok || !strings.Contains(head, " 200 ") || strings.TrimSpace(body) == "" {
			return fmt.Errorf("the guest of %s answers %q: %w", name, all.String(), err)
		}
		page = strings.TrimSpace(body)
		return nil
	})
	return page
}

// stayed requires that nothing of the guest was started anew and that its status is what
// it was, and that what all three processes say to each other does its work.
// It returns what must stay from now on: a pause changes the times in the status.
func (u user) stayed(r resident) resident {
	u.t.Helper()
	v := u.get(r.v.Name)
	require.Equal(u.t, r.v.UID, v.UID)
	was, is := r.v.Status.DeepCopy(), v.Status.DeepCopy()
	was.MigrationMethod, is.MigrationMethod = "", "" // the version before may not write it
	if c := is.Condition(vmi.ConditionLiveMigratable); c != nil && was.Condition(c.Type) == nil {
		require.Equal(u.t, vmi.ReasonLauncherTooOld, c.Reason, "it is of a version that does not migrate")
		is.RemoveCondition(c.Type)
	}
	require.Equal(u.t, was, is, "the status is what it was")
	p := u.pod(v)
	require.Equal(u.t, r.pod.UID, p.UID)
	require.Equal(u.t, containers(r.pod), containers(p), "no container was started anew")
	require.Equal(u.t, r.boot, u.bootOf(v.Name), "the guest did not boot anew")
	u.opensAnew(v.Name)
	require.NoError(u.t, u.vmis.Pause(u.t.Context(), v.Name, vmi.PauseOptions{}))
	u.awaitPaused(v.Name, true)
	require.NoError(u.t, u.vmis.Unpause(u.t.Context(), v.Name, vmi.UnpauseOptions{}))
	u.awaitPaused(v.Name, false)
	_, err := u.vmis.GuestInfo(u.t.Context(), v.Name)
	require.NoError(u.t, err)
	r.v = u.get(v.Name)
	return r
}

// roams moves a VMI to the other node and back, with a second between, until stop. That waits for
// the last migration, and returns how many have ended in which way.
func (s space) roams(name string) (stop func() map[string]int) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := map[string]int{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			ended[s.roam(name)]++
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	s.t.Cleanup(cancel)
	return func() map[string]int {
		cancel()
		<-done
		return ended
	}
}

// roam moves a VMI to another node, and returns how that has ended.
func (s space) roam(name string) string {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*long)
	defer cancel()
	all := world.vmis.VirtualMachineInstanceMigrations(s.name)
	m, err := all.Create(ctx, &vmi.VirtualMachineInstanceMigration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Spec: vmi.VirtualMachineInstanceMigrationSpec{VMIName: name},
	}, metav1.CreateOptions{})
	if err != nil {
		return "not created: " + err.Error()
	}
	for {
		now, err := all.Get(ctx, m.Name, metav1.GetOptions{})
		switch {
		case err == nil && now.Status.Phase == vmi.MigrationPhaseSucceeded:
			return string(vmi.MigrationPhaseSucceeded)
		case err == nil && now.Status.Phase == vmi.MigrationPhaseFailed && now.Status.MigrationState != nil:
			return "failed: " + now.Status.MigrationState.FailureReason
		case err == nil && now.Status.Phase == vmi.MigrationPhaseFailed:
			return "failed before the hand-over"
		case ctx.Err() != nil && now != nil:
			return fmt.Sprintf("not ended: %s %+v", m.Name, now.Status)
		case ctx.Err() != nil:
			return "not ended: " + m.Name
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// roamed requires of a VMI that moved while versions changed that its guest is the same and runs
// once, that some migrations succeeded, and that each has ended.
func (u user) roamed(name, boot string, ended map[string]int) {
	u.t.Helper()
	require.Positive(u.t, ended[string(vmi.MigrationPhaseSucceeded)], "%v", ended)
	for how := range ended {
		require.False(u.t, strings.HasPrefix(how, "not "), "%v", ended)
	}
	v := u.awaitPhase(name, vmi.PhaseRunning)
	require.Equal(u.t, boot, u.bootOf(name), "the guest did not boot anew")
	eventually(u.t, long, func() error {
		l, err := world.kube.CoreV1().Pods(u.name).List(u.t.Context(), metav1.ListOptions{LabelSelector: vmi.CreatedByLabel + "=" + string(v.UID)})
		if err != nil {
			return err
		}
		var run []string
		for _, p := range l.Items {
			if p.Status.Phase == corev1.PodRunning {
				run = append(run, p.Name)
			}
		}
		if len(run) != 1 {
			return fmt.Errorf("%s runs in the pods %q", name, run)
		}
		return nil
	})
}

// labelled is what an image of this version says that it was built from.
func labelled(t *testing.T, component string) version.Info {
	t.Helper()
	i := slices.IndexFunc(world.built, func(b images.Built) bool { return b.Name == component })
	img, err := tarball.ImageFromPath(world.built[i].Tar, nil)
	require.NoError(t, err)
	c, err := img.ConfigFile()
	require.NoError(t, err)
	label := func(name string) string { return c.Config.Labels["org.opencontainers.image."+name] }
	return version.Info{Version: label("version"), Commit: label("revision"), Date: label("created")}
}

// containers are the containers of a pod that run, by name.
func containers(p corev1.Pod) map[string]string {
	all := map[string]string{}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		all[c.Name] = fmt.Sprintf("%s, %d restarts, %s", c.ContainerID, c.RestartCount, c.Image)
	}
	return all
}

// objects are the UIDs of what an installation must not make anew. The APIServices of the
// versions of a CustomResourceDefinition come and go with them.
func (s space) objects() map[string]string {
	s.t.Helper()
	text, err := world.kubectl.Run(s.t.Context(), "get", "crd,vm,vmi,vmirs,deployments,daemonsets,apiservices", "-A", "-o", "json")
	require.NoError(s.t, err)
	var l struct {
		Items []struct {
			Kind     string
			Metadata metav1.ObjectMeta
		}
	}
	require.NoError(s.t, json.Unmarshal([]byte(text), &l))
	all := map[string]string{}
	for _, o := range l.Items {
		if _, automanaged := o.Metadata.Labels["kube-aggregator.kubernetes.io/automanaged"]; automanaged {
			continue
		}
		all[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = string(o.Metadata.UID)
	}
	return all
}

// componentRestarts are the containers of the components that were started again.
func (s space) componentRestarts() (out []string) {
	s.t.Helper()
	l, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	for _, p := range l.Items {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				out = append(out, fmt.Sprintf("%s/%s %d times: %+v", p.Name, c.Name, c.RestartCount, c.LastTerminationState))
			}
		}
	}
	return out
}

// isVersion requires that the API and the KubeVirt say that this version runs.
func (s space) isVersion(want version.Info) {
	s.t.Helper()
	require.NotEmpty(s.t, want.Commit)
	raw, err := world.kube.Discovery().RESTClient().Get().AbsPath("/apis/" + vmi.SubresourceGroup + "/v1/version").Do(s.t.Context()).Raw()
	require.NoError(s.t, err)
	var said apiversion.Info
	require.NoError(s.t, json.Unmarshal(raw, &said))
	require.Equal(s.t, want, version.Info{Version: said.GitVersion, Commit: said.GitCommit, Date: said.BuildDate})
	eventually(s.t, soon, func() error {
		k, err := world.vmis.KubeVirts(install.Namespace).Get(s.t.Context(), "kubevirt", metav1.GetOptions{})
		if err == nil && (k.Status.OperatorVersion != want.Version || k.Status.ObservedKubeVirtVersion != want.Version) {
			err = fmt.Errorf("the status of the KubeVirt is of %q, and %q runs", k.Status.OperatorVersion, k.Status.ObservedKubeVirtVersion)
		}
		return err
	})
}

// TestARollbackAndAnUpgradeLeaveVMIsRunning begins with this version, goes back to the
// earlier one, which PREVIOUS names, and forth again. Guests that each of the two started
// live through it, and one is moved between the nodes all the time.
func TestARollbackAndAnUpgradeLeaveVMIsRunning(t *testing.T) {
	testenv.Root(t)
	commit := os.Getenv("PREVIOUS")
	require.NotEmpty(t, commit, "PREVIOUS names the commit or tag of the version before")
	s := newSpace(t)
	_, err := world.vmis.KubeVirts(install.Namespace).Create(t.Context(), &vmi.KubeVirt{ObjectMeta: metav1.ObjectMeta{Name: "kubevirt"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = world.vmis.KubeVirts(install.Namespace).Delete(context.Background(), "kubevirt", metav1.DeleteOptions{})
	})
	this, earlier := thisSide(), earlierSide(t, commit)
	u := s.user("edit")
	other := s.endPod("other", "n2", nil)

	// What runs from the beginning: a VMI with connections, and a VM.
	s.create(endGuest("steady", "n1", other, vmitest.WithMasquerade("default")))
	s.applyVM(vmi.RunAlways, guest("lasting", cloudConfig("hostname: lasting"), vmitest.WithGracePeriod(0)))
	s.create(guest("roaming", cloudConfig("hostname: roaming"), vmitest.WithGracePeriod(0)))
	residents := []resident{u.settles("steady"), u.settles("lasting")}
	boot := u.settles("roaming").boot
	steady := s.endOf("steady", residents[0].pod)
	goesOn := []func(){steady.hold(other), other.hold(steady)}
	s.endTurn()

	for _, step := range []struct {
		what string
		to   side
	}{{"rollback", earlier}, {"upgrade", this}} {
		began := time.Now()
		before := s.objects()
		streams := u.openStreams("steady")
		roams := s.roams("roaming")
		s.begin(step.to)
		s.startsWhileBothRun(step.to)
		s.end(step.to)
		took := time.Since(began)
		moves := roams()
		u.roamed("roaming", boot, moves)
		t.Logf("%s: migrations of roaming: %v", step.what, moves)
		for i, stream := range streams {
			stream.isCut()
			t.Logf("%s: stream %d of steady was closed, with %v, and opens anew", step.what, i, stream.err)
		}
		for _, check := range goesOn {
			check()
		}
		for i, r := range residents {
			residents[i] = u.stayed(r)
		}
		after := s.objects()
		for name, uid := range before {
			require.Equal(t, uid, after[name], "%s was made anew", name)
		}
		t.Logf("%s to %s in %.0f s: left %d guests with their pods, containers, boots, statuses and connections, and %d objects; replaced the pods of the components and closed the open streams; components started again: %q",
			step.what, step.to.name, took.Seconds(), len(residents), len(before), s.componentRestarts())
		if step.what == "rollback" {
			// A guest of the earlier version, for the upgrade.
			s.create(guest("aged", cloudConfig("hostname: aged")))
			residents = append(residents, u.settles("aged"))
			image := residents[2].pod.Spec.Containers[0].Image
			require.Equal(t, earlier.reference("virt-launcher"), image)
		}
	}

	// A VM that is started anew has the launcher of the new version.
	s.setStrategy("lasting", vmi.RunHalted)
	s.awaitPrintable("lasting", vmi.StatusStopped)
	s.setStrategy("lasting", vmi.RunAlways)
	s.awaitPrintable("lasting", vmi.StatusRunning)
	v := s.awaitSteady("lasting")
	require.NotEqual(t, residents[1].v.UID, v.UID)
	require.Equal(t, this.reference("virt-launcher"), s.pod(v).Spec.Containers[0].Image)
	s.isVersion(labelled(t, "virt-controller"))
	for _, name := range []string{"steady", "aged", "roaming"} {
		s.delete(name)
	}
}
