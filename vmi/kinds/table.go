package kinds

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// All returns the table, a row for each kind. Those that make others stand before these.
func All() []Kind { return slices.Clone(table()) }

var table = sync.OnceValue(func() []Kind {
	return []Kind{
		of(vmi.KubeVirts, rules[*vmi.KubeVirt]{
			faults: configuration, create: onlyKubeVirt, update: changedKubeVirt,
			grants: []Grant{
				to(everyone, "get", "list"), to(string(Handler), "list", "watch"),
				to(string(Controller), "list", "watch"), to(string(Controller), "patch").of("status"),
			},
			eventsBy: []Component{Controller},
		}),
		of(vmpool.VirtualMachinePools, rules[*vmpool.VirtualMachinePool]{
			faults: validate.Pool, update: validate.PoolUpdate, vm: vmOfPool,
			grants: slices.Concat(writing(), owning("get", "list", "watch"), scaling()), statusBy: []Component{Controller}, eventsBy: []Component{Controller},
		}),
		sized(of(vmi.VirtualMachines, rules[*vmi.VirtualMachine]{
			complete: defaults.VirtualMachine, faults: validate.VirtualMachine, update: validate.VirtualMachineUpdate,
			template: func(v *vmi.VirtualMachine) *vmi.VirtualMachineInstanceTemplateSpec { return v.Spec.Template },
			grants:   slices.Concat(writing(), replacing(owning("get", "list", "watch", "create", "patch", "delete")...)),
			statusBy: []Component{Controller}, eventsBy: []Component{Controller},
		})),
		of(vmi.VirtualMachineInstanceReplicaSets, rules[*vmi.VirtualMachineInstanceReplicaSet]{
			complete: defaults.ReplicaSet, faults: validate.ReplicaSet, update: validate.ReplicaSetUpdate,
			template: func(r *vmi.VirtualMachineInstanceReplicaSet) *vmi.VirtualMachineInstanceTemplateSpec {
				return r.Spec.Template
			},
			grants:   slices.Concat(writing(), owning("get", "list", "watch"), scaling()),
			statusBy: []Component{Controller}, eventsBy: []Component{Controller},
		}),
		of(vmi.VirtualMachineInstances, rules[*vmi.VirtualMachineInstance]{
			complete: defaults.Instance, keep: defaults.Keep, faults: validate.Instance, update: existing, fixedSpec: true,
			grants: slices.Concat(writing(), replacing(owning("get", "list", "watch", "create", "patch", "delete")...), replacing(
				to(string(Handler), "list", "watch"), to(string(Handler), "patch").of("status"),
			)),
			statusBy: []Component{Controller, Handler}, eventsBy: []Component{Controller, Handler},
		}),
		of(vmi.VirtualMachineInstanceMigrations, rules[*vmi.VirtualMachineInstanceMigration]{
			complete: labelled, faults: migration, update: migrationUpdate,
			grants: slices.Concat(reading(), []Grant{
				to(editors, "get", "list", "watch"),
				to(movers, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"),
				to(string(Controller), "get", "list", "watch", "create", "patch", "delete"), to(string(Controller), "patch").of("status"),
			}),
			statusBy: []Component{Controller}, eventsBy: []Component{Controller},
		}),
		of(migrationpolicy.MigrationPolicies, rules[*migrationpolicy.MigrationPolicy]{
			faults: migrationPolicy,
			grants: slices.Concat(reading(), []Grant{to(editors, "get", "list", "watch"), to(string(Controller), "list", "watch")}),
		}),
		of(instancetype.VirtualMachineInstancetypes, rules[*instancetype.VirtualMachineInstancetype]{
			faults: func(t *instancetype.VirtualMachineInstancetype, _ validate.User, _ validate.Limits) field.ErrorList {
				return validate.Instancetype(&t.Spec)
			},
			grants: slices.Concat(writing(), named()),
		}),
		of(instancetype.VirtualMachineClusterInstancetypes, rules[*instancetype.VirtualMachineClusterInstancetype]{
			faults: func(t *instancetype.VirtualMachineClusterInstancetype, _ validate.User, _ validate.Limits) field.ErrorList {
				return validate.Instancetype(&t.Spec)
			},
			grants: slices.Concat(writing(), named(), offered()),
		}),
		of(instancetype.VirtualMachinePreferences, rules[*instancetype.VirtualMachinePreference]{
			faults: func(p *instancetype.VirtualMachinePreference, _ validate.User, _ validate.Limits) field.ErrorList {
				return validate.Preference(&p.Spec)
			},
			grants: slices.Concat(writing(), named()),
		}),
		of(instancetype.VirtualMachineClusterPreferences, rules[*instancetype.VirtualMachineClusterPreference]{
			faults: func(p *instancetype.VirtualMachineClusterPreference, _ validate.User, _ validate.Limits) field.ErrorList {
				return validate.Preference(&p.Spec)
			},
			grants: slices.Concat(writing(), named(), offered()),
		}),
	}
})

// vmOfPool is the VM of the template.
func vmOfPool(p *vmpool.VirtualMachinePool) *vmi.VirtualMachine {
	t := p.Spec.VirtualMachineTemplate
	if t == nil {
		return nil
	}
	m := t.ObjectMeta.DeepCopy()
	return &vmi.VirtualMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachines.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: m.Labels, Annotations: m.Annotations}, Spec: *t.Spec.DeepCopy(),
	}
}

// configuration are the faults of a KubeVirt, which no user and no limit changes.
func configuration(k *vmi.KubeVirt, _ validate.User, _ validate.Limits) field.ErrorList {
	return validate.KubeVirt(k)
}

// onlyKubeVirt refuses a KubeVirt with faults, and a second one. One that is stored
// nevertheless, while no webhook answers, has no effect, and its status says why.
func onlyKubeVirt(k *vmi.KubeVirt, c Cluster) field.ErrorList {
	faults := validate.KubeVirt(k)
	if fault := validate.OnlyKubeVirt(k, c.KubeVirts); fault != nil {
		faults = append(faults, fault)
	}
	return faults
}

// changedKubeVirt refuses a change as it would refuse a creation. That it is a second
// one is no fault of a change.
func changedKubeVirt(_, k *vmi.KubeVirt, _ validate.User, _ validate.Limits) field.ErrorList {
	return validate.KubeVirt(k)
}

// existing judges the spec of a VMI that exists by what the cluster allowed when
// it was created: it must stay possible to label the VMI and to remove its
// finalizer. That the spec is not changed is a rule of the schema, and labels that
// are reserved are a policy's, which knows the user's token.
func existing(_, v *vmi.VirtualMachineInstance, _ validate.User, lim validate.Limits) field.ErrorList {
	return validate.Spec(field.NewPath("spec"), &v.Spec, lim.Existing())
}

// labelled is the migration with its label, which no cluster chooses.
func labelled(m *vmi.VirtualMachineInstanceMigration, _ defaults.Profile) *vmi.VirtualMachineInstanceMigration {
	return defaults.Migration(m)
}

func migration(m *vmi.VirtualMachineInstanceMigration, by validate.User, _ validate.Limits) field.ErrorList {
	return validate.Migration(m, by)
}

func migrationUpdate(old, m *vmi.VirtualMachineInstanceMigration, _ validate.User, _ validate.Limits) field.ErrorList {
	return validate.MigrationUpdate(old, m)
}

func migrationPolicy(p *migrationpolicy.MigrationPolicy, _ validate.User, _ validate.Limits) field.ErrorList {
	return validate.MigrationPolicy(p)
}
