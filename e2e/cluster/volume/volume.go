package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// Annotations of Kubernetes between its scheduler, its controller of volumes and who
// provides them.
const (
	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// retry is the time between a failure and the next try.
const retry = time.Second

// Config is what Run works with.
type Config struct {
	// Kube reads claims and writes volumes. Required.
	Kube kubernetes.Interface
	// State is the folder of the cluster, with a folder for each node. Required.
	State string
	// Logger takes a line for each volume. Required.
	Logger *slog.Logger
}

// Run gives claims their volumes until ctx ends.
func Run(ctx context.Context, c Config) error {
	factory := informers.NewSharedInformerFactory(c.Kube, 0)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	p := provider{Config: c, claims: claims.Lister(), volumes: volumes.Lister()}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // it is known already
		}
	}
	for _, i := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if err := p.pass(ctx); err != nil {
			c.Logger.Error("provide volumes", "err", err)
			time.AfterFunc(retry, notify)
		}
	}
}

type provider struct {
	Config
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
}

// pass makes what is missing and removes what is not needed.
func (p provider) pass(ctx context.Context) error {
	claims, err := p.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	volumes, err := p.volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	var faults []error
	for _, c := range claims {
		if _, err := p.volumes.Get(name(c)); wanted(c) && apierrors.IsNotFound(err) {
			faults = append(faults, p.provide(ctx, c))
		}
	}
	for _, v := range volumes {
		if v.Annotations[provisionedBy] == plan.VolumeProvisioner && v.Status.Phase == corev1.VolumeReleased && v.DeletionTimestamp == nil {
			faults = append(faults, p.remove(ctx, v))
		}
	}
	return errors.Join(faults...)
}

// wanted says that the claim waits for a volume and its node is known.
func wanted(c *corev1.PersistentVolumeClaim) bool {
	class := c.Spec.StorageClassName
	return class != nil && *class == plan.StorageClass && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil && c.Annotations[selectedNode] != ""
}

// name is the name of the claim's volume.
func name(c *corev1.PersistentVolumeClaim) string { return "local-" + string(c.UID) }

// dir is the folder of a node's volumes on this host. The node sees it as
// plan.NodeVolumes.
func (p provider) dir(node string) string {
	return filepath.Join(p.State, node, "lib", filepath.Base(plan.NodeVolumes))
}

func (p provider) provide(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	node, size := c.Annotations[selectedNode], c.Spec.Resources.Requests[corev1.ResourceStorage]
	mode := corev1.PersistentVolumeFilesystem
	if m := c.Spec.VolumeMode; m != nil {
		mode = *m
	}
	there := filepath.Join(plan.NodeVolumes, name(c))
	err := os.MkdirAll(p.dir(node), 0o755)
	switch {
	case err != nil:
	case mode == corev1.PersistentVolumeBlock:
		there, err = attach(filepath.Join(p.dir(node), name(c)), size.Value())
	default:
		err = os.MkdirAll(filepath.Join(p.dir(node), name(c)), 0o755)
	}
	if err != nil {
		return fmt.Errorf("make a volume for claim %s/%s on %s: %w", c.Namespace, c.Name, node, err)
	}
	_, err = p.Kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name(c), Annotations: map[string]string{provisionedBy: plan.VolumeProvisioner}, Labels: map[string]string{nodeLabel: node}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: size},
			AccessModes:                   c.Spec.AccessModes,
			VolumeMode:                    &mode,
			StorageClassName:              plan.StorageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: there}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.Logger.Info("volume made", "volume", name(c), "claim", c.Namespace+"/"+c.Name, "node", node, "path", there)
	return nil
}

// nodeLabel is the label of a volume with the name of its node.
const nodeLabel = "cluster.podvisor.io/node"

func (p provider) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	file := filepath.Join(p.dir(v.Labels[nodeLabel]), v.Name)
	if err := errors.Join(Detach(file), os.RemoveAll(file)); err != nil {
		return fmt.Errorf("remove volume %s: %w", v.Name, err)
	}
	p.Logger.Info("volume removed", "volume", v.Name)
	err := p.Kube.CoreV1().PersistentVolumes().Delete(ctx, v.Name, *metav1.NewPreconditionDeleteOptions(string(v.UID)))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
