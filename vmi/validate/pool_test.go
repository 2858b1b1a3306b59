package validate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

func TestPool(t *testing.T) {
	t.Parallel()
	const template = `virtualMachineTemplate: {metadata: {labels: {a: b}}, spec: {runStrategy: Always, template: {spec: {domain: {memory: {guest: 64Mi}}}}}}`
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"right":                {`{spec: {selector: {matchLabels: {a: b}}, maxUnavailable: 30%, ` + template + `}}`, nil},
		"nothing":              {`{spec: {}}`, []string{"spec.selector: FieldValueRequired", "spec.virtualMachineTemplate: FieldValueRequired"}},
		"an empty selector":    {`{spec: {selector: {}, ` + template + `}}`, []string{"spec.selector: FieldValueInvalid"}},
		"a selector of others": {`{spec: {selector: {matchLabels: {a: c}}, ` + template + `}}`, []string{"spec.selector: FieldValueInvalid"}},
		"all faults at once": {`{spec: {replicas: -1, maxUnavailable: many, selector: {matchLabels: {a: b}}, autohealing: {minFailingToStartDuration: -1s},
			scaleInStrategy: {proactive: {selectionPolicy: {selectors: {labelSelector: {matchLabels: {"a b": c}}}}}},
			virtualMachineTemplate: {metadata: {labels: {a: b}}, spec: {template: {spec: {domain: {}}}}}}}`, []string{
			"spec.replicas: FieldValueInvalid", "spec.maxUnavailable: FieldValueInvalid", "spec.autohealing.minFailingToStartDuration: FieldValueInvalid",
			"spec.scaleInStrategy.proactive.selectionPolicy.selectors.labelSelector.matchLabels: FieldValueInvalid",
			"spec.virtualMachineTemplate.spec.running: FieldValueInvalid", "spec.virtualMachineTemplate.spec.template.spec.domain.memory.guest: FieldValueRequired",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Subset(t, fields(validate.Pool(read[vmpool.VirtualMachinePool](t, tt.text), validate.User{}, validate.Limits{})), tt.want)
			if tt.want == nil {
				require.Empty(t, fields(validate.Pool(read[vmpool.VirtualMachinePool](t, tt.text), validate.User{}, validate.Limits{})))
			}
		})
	}
	old := read[vmpool.VirtualMachinePool](t, `{spec: {selector: {matchLabels: {c: d}}, `+template+`}}`)
	p := read[vmpool.VirtualMachinePool](t, `{spec: {selector: {matchLabels: {a: b}}, `+template+`}}`)
	require.Equal(t, []string{"spec.selector: FieldValueInvalid"}, fields(validate.PoolUpdate(old, p, validate.User{}, validate.Limits{})))
	kept := p.DeepCopy()
	kept.Spec.ScaleInStrategy = &vmpool.PoolScaleInStrategy{Proactive: &vmpool.PoolProactiveScaleIn{StatePreservation: new(vmpool.PreserveOffline)}}
	require.Empty(t, validate.PoolUpdate(p, kept, validate.User{}, validate.Limits{}), "there are no disks that would go")
	for _, o := range []*vmpool.VirtualMachinePool{p, kept} {
		o.Spec.VirtualMachineTemplate.Spec.DataVolumeTemplates = []vmi.DataVolumeTemplate{{}}
	}
	require.Equal(t, []string{"spec.scaleInStrategy: FieldValueInvalid"}, fields(validate.PoolUpdate(p, kept, validate.User{}, validate.Limits{})))
	require.Empty(t, validate.PoolUpdate(kept, p, validate.User{}, validate.Limits{}), "disks that were kept stay")
	p.Spec.VirtualMachineTemplate.Spec.DataVolumeTemplates = nil
	narrow := validate.Limits{NoBridgeOnPodNetwork: true}
	require.Empty(t, validate.PoolUpdate(p, p, validate.User{}, narrow), "a template that does not change is not judged again")
}
