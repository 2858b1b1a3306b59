package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/podvisor/podvisor/handler/stream"
	"github.com/podvisor/podvisor/internal/transport"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
)

// playedNodes are those without a virt-handler of their own.
var playedNodes = [2]string{"n1", "n2"}

// movers play the handlers of n1 and n2 where virt-controller calls them about migrations. A
// guest moves at once when it is asked to.
type movers struct {
	nodes       *nodes
	certificate stream.Certificate
	host        string

	mu      sync.Mutex
	started map[types.UID]bool // by the UID of the migration
}

// serveMovers serves until the context ends.
func serveMovers(ctx context.Context, n *nodes) (*movers, error) {
	m := &movers{nodes: n, started: map[types.UID]bool{}}
	var err error
	if m.certificate, err = stream.NewCertificate(time.Now()); err != nil {
		return nil, err
	}
	if m.host, _, err = net.SplitHostPort(address()); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(m.host, "8186"))
	if err != nil {
		return nil, err
	}
	s := stream.NewServer(stream.ServerConfig{Guests: m, Certificate: m.certificate, Admit: func(context.Context, string, string) error { return nil }})
	n.wg.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			n.fail(fmt.Errorf("serve the handlers that are played: %w", err))
		}
	})
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, stream.CertificateAnnotation, m.certificate.Hash)
	for _, node := range playedNodes {
		if _, err := world.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Stream implements stream.Guests.
func (m *movers) Stream(context.Context, protocol.Target, protocol.Stream) (net.Conn, error) {
	return nil, transport.Refusal(protocol.ReasonUnknown, "it is played")
}

// Call implements stream.Guests.
func (m *movers) Call(_ context.Context, of protocol.Target, c protocol.Call, options json.RawMessage) (json.RawMessage, error) {
	var step protocol.MigrationStep
	if err := json.Unmarshal(options, &step); err != nil {
		return nil, err
	}
	m.nodes.mu.Lock()
	v := m.nodes.vmis[of.Key()]
	m.nodes.mu.Unlock()
	if v == nil || v.Status.MigrationState == nil || v.Status.MigrationState.MigrationUID != step.UID {
		return nil, transport.Refusal(protocol.ReasonUnavailable, "the VMI's status names another migration")
	}
	switch c {
	case protocol.CallMigrationAccept:
	case protocol.CallMigrationStart:
		m.mu.Lock()
		m.started[step.UID] = true
		m.mu.Unlock()
		m.nodes.loop.Add("vmi/" + of.Key())
	default:
		return nil, transport.Refusal(protocol.ReasonUnknown, "it is played")
	}
	return nil, nil
}

func (m *movers) isStarted(s *vmi.MigrationState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return s != nil && !s.Completed && m.started[s.MigrationUID]
}

// move does what the handlers do next for a migration that was started: that of the source
// writes that memory is sent, and that of the target that the guest runs there.
func (n *nodes) move(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	changed, now := v.DeepCopy(), metav1.Now()
	s := changed.Status.MigrationState
	by := s.SourceNode
	if s.StartTimestamp == nil {
		s.StartTimestamp, s.Mode, s.TargetNodeAddress = &now, vmi.MigrationPreCopy, "192.0.2.2"
	} else {
		by = s.TargetNode
		changed.Status.NodeName, changed.Status.EvacuationNodeName = s.TargetNode, ""
		s.Completed, s.EndTimestamp, s.TargetNodeDomainDetected, s.TargetNodeDomainReadyTimestamp = true, &now, true, &now
	}
	_, err := client.WriteStatus(ctx, n.mine[by].VirtualMachineInstances(v.Namespace), v, changed)
	return err
}

// leave ends the pod that the guest of the VMI has left.
func (n *nodes) leave(ctx context.Context, v *vmi.VirtualMachineInstance) error {
	n.mu.Lock()
	p := n.pods[v.Namespace+"/"+v.Status.MigrationState.SourcePod]
	n.mu.Unlock()
	if p == nil || p.Status.Phase != corev1.PodRunning {
		return nil
	}
	pods := world.kube.CoreV1().Pods(p.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // no event of the VMI follows
		now, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.UID {
			return err
		}
		ended(now, movedAway)
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// moved says that the guest of the VMI has moved, and does not move again.
func moved(v *vmi.VirtualMachineInstance) bool {
	s := v.Status.MigrationState
	return s != nil && s.Completed && !s.Failed
}

// migrate makes a migration of the VMI. A user who is refused, as while virt-controller does not
// answer the review, asks again. One that was not answered may have been made. Between handlers
// that are processes a migration may fail, and is deleted with its target, which leaves nothing of
// it; then there is another one.
func (u *user) migrate(ctx context.Context, name, of string) error {
	all := world.vmis.VirtualMachineInstanceMigrations(u.namespace)
	m := &vmi.VirtualMachineInstanceMigration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.VMIName = of
	for w := newWait(); ; {
		_, err := all.Create(ctx, m, metav1.CreateOptions{})
		if err = ignoreExists(err); err == nil && !u.handled {
			return nil
		}
		if err == nil {
			var now *vmi.VirtualMachineInstanceMigration
			now, err = all.Get(ctx, name, metav1.GetOptions{})
			switch {
			case err != nil:
			case now.Status.Phase == vmi.MigrationPhaseSucceeded:
				return nil
			case now.DeletionTimestamp != nil:
				err = errors.New("it is being deleted")
			case now.Status.Phase == vmi.MigrationPhaseFailed:
				u.failed = append(u.failed, fmt.Sprintf("%+v", now.Status.MigrationState))
				err = errors.Join(errors.New("it has failed"), deleteTarget(ctx, now), all.Delete(ctx, name, metav1.DeleteOptions{}))
			default:
				err = fmt.Errorf("it is %s", now.Status.Phase)
			}
		}
		if w.over() {
			return fmt.Errorf("migration %s: %w; before it failed: %q", name, err, u.failed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// deleteTarget deletes the target of a migration that has failed. One that has ended stays until the
// VMI is gone.
func deleteTarget(ctx context.Context, m *vmi.VirtualMachineInstanceMigration) error {
	return world.kube.CoreV1().Pods(m.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: vmi.MigrationJobLabel + "=" + string(m.UID)})
}

// evict asks for the eviction of the pod of the VMI, as kubectl drain does, until the VMI says
// that it has to leave its node, or has left it.
func (u *user) evict(ctx context.Context, name string) error {
	from := ""
	for w := newWait(); ; {
		v, err := world.vmis.VirtualMachineInstances(u.namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && from == "" {
			from = v.Status.NodeName
		}
		switch {
		case err != nil:
		case v.Status.EvacuationNodeName != "" || v.Status.NodeName != from:
			return nil
		default:
			err = world.kube.CoreV1().Pods(u.namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: instance.ActivePodName(v)}})
			if err == nil {
				return errors.New("the pod of a VMI that moves is evicted")
			}
		}
		if w.over() {
			return fmt.Errorf("evict VMI %s: %w", name, err)
		}
		wait := 100 * time.Millisecond
		if apierrors.IsTooManyRequests(err) {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// ofMigrations says that the step is one that migrations alone have.
func ofMigrations(s Step) bool {
	return slices.ContainsFunc([]string{"virtualmachineinstancemigrations", "serviceaccounts/token", "tokenreviews", "get nodes", "migrationpolicies", " of " + moverName}, s.names)
}
