package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	provisioner "github.com/kubernetes-csi/external-provisioner/v5/pkg/controller"
	resizercontroller "github.com/kubernetes-csi/external-resizer/pkg/controller"
	resizerclient "github.com/kubernetes-csi/external-resizer/pkg/csi"
	"github.com/kubernetes-csi/external-resizer/pkg/resizer"
	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	snapshotscheme "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned/scheme"
	snapshotinformers "github.com/kubernetes-csi/external-snapshotter/client/v8/informers/externalversions"
	snapshotcontroller "github.com/kubernetes-csi/external-snapshotter/v8/pkg/common-controller"
	snapshotmetrics "github.com/kubernetes-csi/external-snapshotter/v8/pkg/metrics"
	snapshotsidecar "github.com/kubernetes-csi/external-snapshotter/v8/pkg/sidecar-controller"
	"github.com/kubernetes-csi/external-snapshotter/v8/pkg/snapshotter"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	csitrans "k8s.io/csi-translation-lib"
	controllerlib "sigs.k8s.io/sig-storage-lib-external-provisioner/v11/controller"
)

// Times of the controllers: how long a call of the driver may take, and between tries
// and listings. The retries are faster than in a real cluster, where drivers are far.
const (
	callTimeout = time.Minute
	firstRetry  = 200 * time.Millisecond
	lastRetry   = 10 * time.Second
	resync      = 10 * time.Minute
	workers     = 10
)

// access is how to reach the API server.
type access struct{ server, ca, cert, key string }

func (a access) config() *rest.Config {
	return &rest.Config{Host: a.server, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: a.ca, CertFile: a.cert, KeyFile: a.key}}
}

// sidecars are the controllers' clients.
type sidecars struct {
	kube   *kubernetes.Clientset
	snaps  *snapshots.Clientset
	driver *grpc.ClientConn
	core   informers.SharedInformerFactory
	snap   snapshotinformers.SharedInformerFactory
}

// runSidecars starts the controllers that call the driver at the socket for claims and
// snapshots. They end with the process.
func runSidecars(ctx context.Context, a access, socket string) error {
	kube, err := kubernetes.NewForConfig(a.config())
	if err != nil {
		return err
	}
	snaps, err := snapshots.NewForConfig(a.config())
	if err != nil {
		return err
	}
	conn, err := connection.Connect(ctx, socket, metrics.NewCSIMetricsManager(driverName))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", socket, err)
	}
	s := sidecars{kube, snaps, conn, informers.NewSharedInformerFactory(kube, resync), snapshotinformers.NewSharedInformerFactory(snaps, resync)}
	for _, start := range []func(context.Context, string) (func(), error){s.provisioner, s.resizer} {
		run, err := start(ctx, socket)
		if err != nil {
			return err
		}
		go run()
	}
	go s.snapshots(ctx)
	return nil
}

// provisioner is external-provisioner: it makes and removes the volumes of claims.
func (s sidecars) provisioner(ctx context.Context, _ string) (func(), error) {
	plugin, controller, err := provisioner.GetDriverCapabilities(s.driver, callTimeout)
	if err != nil {
		return nil, err
	}
	claims := s.core.Core().V1().PersistentVolumeClaims()
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[any](firstRetry, lastRetry)
	p := provisioner.NewCSIProvisioner(s.kube, callTimeout, driverName, "pvc", -1, s.driver, s.snaps, driverName, plugin, controller,
		"", false, false, csitrans.New(), s.core.Storage().V1().StorageClasses().Lister(), nil, nil, claims.Lister(), nil, nil,
		false, "ext4", nil, false, true)
	volumes := controllerlib.NewProvisionController(ctx, s.kube, driverName, p,
		controllerlib.LeaderElection(false), controllerlib.FailedProvisionThreshold(0), controllerlib.FailedDeleteThreshold(0),
		controllerlib.RateLimiter(limit), controllerlib.Threadiness(workers), controllerlib.ClaimsInformer(claims.Informer()),
		controllerlib.AddFinalizer(true))
	clones := provisioner.NewCloningProtectionController(s.kube, claims.Lister(), claims.Informer(),
		workqueue.NewTypedRateLimitingQueueWithConfig(limit, workqueue.TypedRateLimitingQueueConfig[any]{Name: "claims"}), controller)
	return func() {
		s.core.Start(ctx.Done())
		s.core.WaitForCacheSync(ctx.Done())
		go clones.Run(ctx, 1)
		volumes.Run(ctx)
	}, nil
}

// resizer is external-resizer: it expands volumes whose claims grow.
func (s sidecars) resizer(ctx context.Context, socket string) (func(), error) {
	client, err := resizerclient.New(ctx, socket, callTimeout, metrics.NewCSIMetricsManager(driverName))
	if err != nil {
		return nil, err
	}
	r, err := resizer.NewResizerFromClient(client, callTimeout, s.kube, driverName)
	if err != nil {
		return nil, err
	}
	core := informers.NewSharedInformerFactory(s.kube, resync)
	c := resizercontroller.NewResizeController(r.Name(), r, s.kube, resync, core, retries(), true, lastRetry)
	return func() {
		core.Start(ctx.Done())
		c.Run(workers, ctx)
	}, nil
}

// snapshots are snapshot-controller and csi-snapshotter. They begin when their kinds
// are served.
func (s sidecars) snapshots(ctx context.Context) {
	for ctx.Err() == nil {
		if _, err := s.snaps.SnapshotV1().VolumeSnapshotContents().List(ctx, metav1.ListOptions{Limit: 1}); err == nil {
			break
		}
		time.Sleep(firstRetry)
	}
	if err := snapshotscheme.AddToScheme(scheme.Scheme); err != nil { // for their events
		panic(err) // the scheme is fixed
	}
	v1, group := s.snap.Snapshot().V1(), s.snap.Groupsnapshot().V1beta1()
	core := informers.NewSharedInformerFactory(s.kube, resync)
	common := snapshotcontroller.NewCSISnapshotCommonController(s.snaps, s.kube, v1.VolumeSnapshots(), v1.VolumeSnapshotContents(),
		v1.VolumeSnapshotClasses(), group.VolumeGroupSnapshots(), group.VolumeGroupSnapshotContents(), group.VolumeGroupSnapshotClasses(),
		core.Core().V1().PersistentVolumeClaims(), core.Core().V1().PersistentVolumes(), nil, snapshotmetrics.NewMetricsManager(), resync,
		retries(), retries(), retries(), retries(), false, true, false)
	sidecar := snapshotsidecar.NewCSISnapshotSideCarController(s.snaps, s.kube, driverName, v1.VolumeSnapshotContents(), v1.VolumeSnapshotClasses(),
		snapshotter.NewSnapshotter(s.driver), nil, callTimeout, resync, "snapshot", -1, "group", -1, false, retries(), false,
		group.VolumeGroupSnapshotContents(), group.VolumeGroupSnapshotClasses(), retries())
	s.snap.Start(ctx.Done())
	core.Start(ctx.Done())
	go common.Run(workers, ctx.Done())
	sidecar.Run(workers, ctx.Done())
}

func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
}
