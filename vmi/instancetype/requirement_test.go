package instancetype_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/instancetype"
)

func TestAPreferenceHasRequirements(t *testing.T) {
	t.Parallel()
	const cpu = "spec.template.spec.domain.cpu."
	for name, tt := range map[string]struct {
		template, size, preference string
		want                       string // the field. Empty: all is met
	}{
		"of the processors first": {`{}`, `{cpu: {guest: 1}, memory: {guest: 1Gi}}`, `{requirements: {cpu: {guest: 2}, memory: {guest: 2Gi}, architecture: arm64}}`, "spec.instancetype"},
		"of the memory then":      {`{}`, `{cpu: {guest: 2}, memory: {guest: 1Gi}}`, `{requirements: {cpu: {guest: 2}, memory: {guest: 2Gi}, architecture: arm64}}`, "spec.instancetype"},
		"of the architecture":     {`{}`, `{cpu: {guest: 2}, memory: {guest: 2Gi}}`, `{requirements: {cpu: {guest: 2}, memory: {guest: 2Gi}, architecture: arm64}}`, "spec.template.spec.architecture"},
		"all met":                 {`{}`, `{cpu: {guest: 2}, memory: {guest: 2Gi}}`, `{requirements: {cpu: {guest: 2}, memory: {guest: 2Gi}, architecture: amd64}}`, ""},
		"of sockets":              {`{domain: {cpu: {sockets: 1, cores: 4, threads: 1}}}`, "", `{requirements: {cpu: {guest: 4}}}`, cpu + "sockets"},
		"of cores":                {`{domain: {cpu: {sockets: 4, cores: 1}}}`, "", `{cpu: {preferredCPUTopology: cores}, requirements: {cpu: {guest: 4}}}`, cpu + "cores"},
		"of threads":              {`{domain: {cpu: {threads: 4}}}`, "", `{cpu: {preferredCPUTopology: threads}, requirements: {cpu: {guest: 4}}}`, ""},
		"of any":                  {`{domain: {cpu: {sockets: 2, cores: 2, threads: 1}}}`, "", `{cpu: {preferredCPUTopology: any}, requirements: {cpu: {guest: 4}}}`, ""},
		"of any, cores alone":     {`{domain: {cpu: {cores: 4}}}`, "", `{cpu: {preferredCPUTopology: any}, requirements: {cpu: {guest: 4}}}`, cpu + "sockets, " + cpu + "cores, " + cpu + "threads"},
		"of cores and threads": {`{domain: {cpu: {sockets: 4, cores: 2, threads: 1}}}`, "",
			`{cpu: {preferredCPUTopology: spread, spreadOptions: {across: CoresThreads}}, requirements: {cpu: {guest: 8}}}`, cpu + "cores, " + cpu + "threads"},
		"of sockets and cores": {`{domain: {cpu: {sockets: 4, cores: 2, threads: 1}}}`, "", `{cpu: {preferredCPUTopology: spread}, requirements: {cpu: {guest: 8}}}`, ""},
		"of all three": {`{domain: {cpu: {sockets: 2, cores: 2, threads: 2}}}`, "",
			`{cpu: {preferredCPUTopology: spread, spreadOptions: {across: SocketsCoresThreads}}, requirements: {cpu: {guest: 8}}}`, ""},
		"of a template that says nothing": {`{}`, "", `{requirements: {cpu: {guest: 2}}}`, cpu + "sockets"},
		"of memory of the template":       {`{domain: {memory: {guest: 1Gi}}}`, "", `{requirements: {memory: {guest: 2Gi}}}`, "spec.template.spec.domain.memory"},
		"enough memory of the template":   {`{domain: {memory: {guest: 2Gi}}}`, "", `{requirements: {memory: {guest: 2Gi}}}`, ""},
		"none":                            {`{}`, `{cpu: {guest: 1}, memory: {guest: 1Gi}}`, `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it, p := from[instancetype.VirtualMachineInstancetypeSpec](t, tt.size), from[instancetype.VirtualMachinePreferenceSpec](t, tt.preference)
			_, faults := instancetype.Check(vm(t, tt.template, ""), it, p, defaults.Profile{})
			if tt.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Equal(t, []string{tt.want}, fieldsOf(faults))
			require.Equal(t, field.ErrorTypeNotFound, faults[0].Type)
		})
	}
}
