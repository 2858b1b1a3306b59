package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/reconcile"
	"github.com/podvisor/podvisor/scheduler/sizing"
	"github.com/podvisor/podvisor/scheduler/vm"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/informer"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

// sizes is the cache of one kind of instance types or preferences.
type sizes struct {
	kind string
	// of is the object with the key. Nil: there is none.
	of func(key string) vmi.Object
	// watch has the loop queue what the function returns for an object that changes.
	watch func(l *reconcile.Loop, keys func(vmi.Object) []string) error
}

func cacheSizes[T vmi.Object, L runtime.Object](c Config, s *caches, d vmi.DefinitionOf[T, L]) error {
	i, err := informer.NewFiltered(client.Of(c.Client, d, c.Namespace), informer.Selection{})
	if err != nil {
		return err
	}
	s.sizes = append(s.sizes, sizes{
		kind: d.Kind,
		of: func(key string) vmi.Object {
			var none T
			if o := i.Lister().Key(key); any(o) != any(none) {
				return o
			}
			return nil
		},
		watch: func(l *reconcile.Loop, keys func(vmi.Object) []string) error {
			return reconcile.Watch(i, l, func(o T) []string { return keys(o) }, nil)
		},
	})
	return reconcile.Cache(&s.Caches, i, reconcile.Cached[T]{})
}

// indexNamed finds VMs by what they name, and indexSized the ControllerRevisions that hold it
// by the UID of their VM.
const (
	indexNamed = "named"
	indexSized = "sized"
)

// named are the keys of what the VM names in indexNamed.
func named(v *vmi.VirtualMachine) []string {
	var out []string
	for _, r := range instancetype.References(v) {
		if d, ok := r.Definition(); ok {
			out = append(out, namedKey(d.Kind, sizeKey(d, v.Namespace, r.Name)))
		}
	}
	return out
}

func namedKey(kind, key string) string { return kind + " " + key }

// sizeKey is the key of an object in the cache of its kind.
func sizeKey(d vmi.Definition, namespace, name string) string {
	if d.ClusterScoped {
		return name
	}
	return reconcile.KeyIn(namespace, name)
}

// sized is the [controlledKey] of the VM whose instance type or preference the revision holds.
func sized(r *appsv1.ControllerRevision) []string {
	if r.Labels[instancetype.ObjectNameLabel] == "" {
		return nil
	}
	return controlledBy(r, vmi.VirtualMachines.Definition)
}

// watchSizes queues VMs when what they name changes.
func watchSizes(c *Controller, k *loopOf[*vmi.VirtualMachine, *vmi.VirtualMachineList]) error {
	for _, s := range c.caches.sizes {
		if err := s.watch(k.loop, func(o vmi.Object) []string {
			keys, _ := k.cached.GetIndexer().IndexKeys(indexNamed, namedKey(s.kind, reconcile.Key(o))) // the index exists
			return keys
		}); err != nil {
			return err
		}
	}
	return nil
}

// sizesOf gives the observation what the VM names, as far as the decision needs it.
func (c *Controller) sizesOf(ctx context.Context, v *vmi.VirtualMachine, o *vm.Observed) error {
	held, err := c.caches.revisions.GetIndexer().ByIndex(indexSized, controlledKey(v))
	if err != nil {
		return err
	}
	for _, r := range held {
		o.Sizes = append(o.Sizes, r.(*appsv1.ControllerRevision))
	}
	now := *o
	now.VM = v
	if o.Found, err = c.lookup(ctx).Find(v.Namespace, now.Sought()); err != nil {
		return err
	}
	now.Found = o.Found
	o.Renamed, err = c.lookup(ctx).Find(v.Namespace, now.SoughtRenamed())
	return err
}

// lookup reads what VMs name by the caches, and by the API server what they do not have.
func (c *Controller) lookup(ctx context.Context) instancetype.Lookup {
	direct := sizing.Lookup(ctx, c.cfg.Client, c.cfg.Kube)
	return instancetype.Lookup{
		Object: func(d vmi.Definition, namespace, name string) (vmi.Object, error) {
			for _, s := range c.caches.sizes {
				if s.kind != d.Kind {
					continue
				}
				if o := s.of(sizeKey(d, namespace, name)); o != nil {
					return o, nil
				}
			}
			return direct.Object(d, namespace, name)
		},
		Claim: direct.Claim,
		// What a revision holds never changes, so it is read once in a while.
		Revision: func(namespace, name string) (*appsv1.ControllerRevision, error) {
			key := types.UID(reconcile.KeyIn(namespace, name))
			if r, ok := c.revisions.Get(key, c.cfg.Now()); ok {
				return r, nil
			}
			r, err := direct.Revision(namespace, name)
			if r != nil && err == nil {
				c.revisions.Put(key, r, c.cfg.Now(), recentFor)
			}
			return r, err
		},
	}
}
