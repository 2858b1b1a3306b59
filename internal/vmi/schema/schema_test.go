package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// faults are those of a VMI with this spec.
func faults(t *testing.T, kind, object string) []string {
	t.Helper()
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(object), &o))
	var out []string
	for _, e := range Faults(kind, Completed(kind, o)) {
		out = append(out, e.Error())
	}
	return out
}

func TestAnObjectIsJudgedByTheSchemaOfItsKind(t *testing.T) {
	t.Parallel()
	const kind = "VirtualMachineInstance"
	for name, tt := range map[string]struct {
		spec string
		want []string
	}{
		"a right one":              {`{domain: {devices: {}, memory: {guest: 1Gi}}}`, nil},
		"a field that is required": {`{domain: {}}`, []string{"spec.domain.devices: Required value"}},
		"null":                     {`{domain: {devices: {disks: null}}}`, nil},
		"null in a list":           {`{domain: {devices: {disks: [null]}}}`, []string{`spec.domain.devices.disks[0]: Invalid value: "null": must be of type object: "null"`}},
		"another type":             {`{hostname: 3, domain: {devices: []}}`, []string{`spec.domain.devices: Invalid value: "array": must be of type object: "array"`, `spec.hostname: Invalid value: "integer": must be of type string: "integer"`}},
		"a word that is none":      {`{domain: {devices: {inputs: [{name: a, type: mouse, bus: usb}]}}}`, []string{`spec.domain.devices.inputs[0].type: Unsupported value: "mouse": supported values: "tablet"`}},
		"a number that is too small": {`{terminationGracePeriodSeconds: -1, domain: {devices: {}}}`, []string{
			`spec.terminationGracePeriodSeconds: Invalid value: -1: should be greater than or equal to 0`}},
		"a quantity that is none": {`{domain: {devices: {}, memory: {guest: x}}}`, []string{
			`spec.domain.memory.guest: Invalid value: "x": should match '^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[01]?[0-9])?$'`}},
		"a quantity as a number":    {`{domain: {devices: {}, memory: {guest: 64000000}}}`, nil},
		"a fraction of a quantity":  {`{domain: {devices: {}, memory: {guest: 1.5}}}`, []string{`spec.domain.memory.guest: Invalid value: "number": must be of type integer or string: "number"`}},
		"two elements of one name":  {`{domain: {devices: {disks: [{name: a}, {name: a}]}}}`, []string{`spec.domain.devices.disks[1]: Duplicate value: {"name":"a"}`}},
		"a default in the key":      {`{networks: [{name: a, pod: {}}], domain: {devices: {interfaces: [{name: a, ports: [{port: 1}, {port: 1, protocol: UDP}]}]}}}`, nil},
		"a rule":                    {`{networks: [{name: a}], domain: {devices: {}}}`, []string{"spec.networks[0]: Invalid value: a network has exactly one source: pod or multus"}},
		"a rule about a field":      {`{dnsPolicy: None, domain: {devices: {}}}`, []string{"spec.dnsConfig: Invalid value: dnsPolicy None needs dnsConfig with at least one name server: set dnsConfig, or choose another dnsPolicy"}},
		"a field of before v1":      {`{domain: {devices: {}}, volumes: [{name: a, registryDisk: {}, emptyDisk: {capacity: 1Gi}}]}`, []string{"spec.volumes[0].registryDisk: Invalid value: write containerDisk: this is a field of before kubevirt.io/v1"}},
		"a field that is not there": {`{domain: {devices: {}, speed: fast}}`, nil},
		"a map":                     {`{nodeSelector: {a: 1}, domain: {devices: {}}}`, []string{`spec.nodeSelector.a: Invalid value: "integer": must be of type string: "integer"`}},
		"base64":                    {`{domain: {devices: {}, launchSecurity: {sev: {session: "?", dhCert: YQ==}}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, faults(t, kind, "{spec: "+tt.spec+"}"))
		})
	}
}

func TestAKindWithoutASchemaHasNoFaults(t *testing.T) {
	t.Parallel()
	require.Empty(t, faults(t, "VirtualMachineSnapshot", `{spec: {x: 1}}`))
	require.Equal(t, map[string]any{"spec": nil}, Completed("VirtualMachineSnapshot", map[string]any{"spec": nil}))
}

func TestTheNumberOfFaultsIsBounded(t *testing.T) {
	t.Parallel()
	o := map[string]any{"spec": map[string]any{"domain": map[string]any{"devices": map[string]any{}}}}
	selector := map[string]any{}
	for _, a := range "abcdefghijklmnopqrstuvwxyz" {
		for _, b := range "abcdef" {
			selector[string([]rune{a, b})] = int64(1)
		}
	}
	o["spec"].(map[string]any)["nodeSelector"] = selector
	require.Len(t, Faults("VirtualMachineInstance", o), MaxFaults)
}

func TestRulesAreEvaluatedAsCELIs(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]any{
		"true":               true,
		"!has(self.missing)": true,
		"has(self.list) && self.list.size() == 2":                      true,
		"self.word != '' || self.missing == 1":                         true,
		"self.missing == 1 || true":                                    true,
		"self.missing == 1 && false":                                   false,
		"self.missing == 1":                                            nil,
		"self.number <= 3 && self.number >= 3":                         true,
		"self.number < 3 || self.number > 3":                           false,
		"self.word in ['', 'a']":                                       true,
		"self.word in ['b']":                                           false,
		"[has(self.word), has(self.missing)].filter(x, x).size() == 1": true,
		"has(self.missing) ? self.missing : self.on":                   true,
		"(has(self.word) && self.word != '') != has(self.on)":          false,
		"self.object.size() == 0":                                      true,
		"self.word.size() == 1":                                        true,
		"dyn(self).size() == 5":                                        true,
		"dyn(self.list).size() == 1":                                   false,
		"dyn(self.missing).size() == 1":                                nil,
		"self.word < 1":                                                nil,
		"self.word.below == 1":                                         nil,
		"other == 1":                                                   nil,
		"self.number in self.word":                                     nil,
		"self.on.size() == 1":                                          nil,
		"self.word ? true : false":                                     nil,
	} {
		e, err := parse(rule)
		require.NoError(t, err, rule)
		v, err := e.eval(scope{"self": map[string]any{"word": "a", "number": json.Number("3"), "on": true, "list": []any{"a", "b"}, "object": map[string]any{}}})
		if want == nil {
			require.Error(t, err, rule)
			continue
		}
		require.NoError(t, err, rule)
		require.Equal(t, want, v, rule)
	}
}

func TestWhatIsNotKnownOfCELIsAnError(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{"", "self.", "self.all(x, x)", "has(self)", "(self", "[self", "self ? 1", "'a", `'\''`, "self self", "@", "self.filter(x x)", "1.5", "dyn(self", "dyn self"} {
		_, err := parse(rule)
		require.Error(t, err, rule)
	}
}

func FuzzRules(f *testing.F) {
	for _, rule := range []string{"has(self.a) != has(self.b)", "!(has(self.a) && self.b.size() <= 1) ? 1 in [1] : 'x' == self.c", "[self].filter(x, x.a)"} {
		f.Add(rule)
	}
	f.Fuzz(func(t *testing.T, rule string) {
		if e, err := parse(rule); err == nil {
			_, _ = e.eval(scope{"self": map[string]any{"a": true, "b": []any{1}}})
		}
	})
}

func FuzzFaults(f *testing.F) {
	f.Add(`{"spec":{"domain":{"devices":{"disks":[{"name":"a"},null]}},"volumes":[{"name":"a","emptyDisk":{"capacity":1}}]}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		var o map[string]any
		if json.Unmarshal([]byte(text), &o) == nil {
			for kind := range all().Kinds {
				Faults(kind, Completed(kind, o))
			}
		}
	})
}
