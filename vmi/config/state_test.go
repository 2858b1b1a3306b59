package config_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

// ratio is the KubeVirt of this generation, and of this ratio, which is wrong if
// it is not a number.
func ratio(generation int64, r string) *vmi.KubeVirt {
	k := kubevirt(vmi.KubeVirtConfiguration{AdditionalGuestMemoryOverheadRatio: &r})
	k.Generation = generation
	return k
}

// known gives k a status that says which ratio was in force at a generation.
func known(k *vmi.KubeVirt, generation int64, r string) *vmi.KubeVirt {
	b, _ := json.Marshal(ratio(0, r).Spec.Configuration)
	k.Status.ObservedGeneration, k.Status.ObservedDeploymentConfig = &generation, string(b)
	return k
}

func TestWhichConfigurationIsInForce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		// seen are the KubeVirts one after the other; nil is none.
		seen       []*vmi.KubeVirt
		ratio      float64
		generation int64
		faulty     bool
	}{
		"none":                              {},
		"a good one":                        {seen: []*vmi.KubeVirt{ratio(1, "2")}, ratio: 2, generation: 1},
		"a changed one":                     {seen: []*vmi.KubeVirt{ratio(1, "2"), ratio(2, "3")}, ratio: 3, generation: 2},
		"a broken one leaves the last":      {seen: []*vmi.KubeVirt{ratio(1, "2"), ratio(2, "x")}, ratio: 2, generation: 1, faulty: true},
		"so does a second broken one":       {seen: []*vmi.KubeVirt{ratio(1, "2"), ratio(2, "x"), ratio(3, "y")}, ratio: 2, generation: 1, faulty: true},
		"a repaired one":                    {seen: []*vmi.KubeVirt{ratio(1, "2"), ratio(2, "x"), ratio(3, "4")}, ratio: 4, generation: 3},
		"broken from the start":             {seen: []*vmi.KubeVirt{ratio(1, "x")}, faulty: true},
		"broken after a restart":            {seen: []*vmi.KubeVirt{known(ratio(2, "x"), 2, "3")}, ratio: 3, generation: 2, faulty: true},
		"the status knows more":             {seen: []*vmi.KubeVirt{ratio(1, "2"), known(ratio(5, "x"), 4, "3")}, ratio: 3, generation: 4, faulty: true},
		"the process knows more":            {seen: []*vmi.KubeVirt{ratio(4, "2"), known(ratio(5, "x"), 1, "3")}, ratio: 2, generation: 4, faulty: true},
		"a status that cannot be used":      {seen: []*vmi.KubeVirt{known(ratio(2, "x"), 2, "y")}, faulty: true},
		"one that cannot be decoded":        {seen: []*vmi.KubeVirt{ratio(1, "2"), unreadable(ratio(2, "3"))}, ratio: 2, generation: 1, faulty: true},
		"that again, after a restart":       {seen: []*vmi.KubeVirt{known(unreadable(ratio(2, "4")), 2, "3")}, ratio: 3, generation: 2, faulty: true},
		"that again, repaired":              {seen: []*vmi.KubeVirt{unreadable(ratio(2, "4")), ratio(3, "5")}, ratio: 5, generation: 3},
		"one that was never decoded":        {seen: []*vmi.KubeVirt{unreadable(ratio(1, "2"))}, faulty: true},
		"deleted":                           {seen: []*vmi.KubeVirt{ratio(1, "2"), nil}},
		"a broken one that is another's":    {seen: []*vmi.KubeVirt{ratio(1, "2"), other(ratio(1, "x"))}, faulty: true},
		"deleted, and another broken again": {seen: []*vmi.KubeVirt{ratio(1, "2"), nil, other(ratio(1, "x"))}, faulty: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s config.State
			for _, k := range tt.seen {
				var all []*vmi.KubeVirt
				if k != nil {
					all = append(all, k)
				}
				s = config.NextState(s, all)
			}
			require.Equal(t, tt.ratio, s.Config.Pods.OverheadRatio)
			require.Equal(t, tt.generation, s.Generation)
			require.Equal(t, tt.faulty, len(s.Faults) > 0)
		})
	}
}

// unreadable is k as one that cannot be decoded.
func unreadable(k *vmi.KubeVirt) *vmi.KubeVirt {
	k.Spec = vmi.KubeVirtSpec{}
	vmi.SetUnreadable(k, &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Path: "spec.configuration.cpuRequest", Value: "{}", Message: "must be a quantity"}}})
	return k
}

// other is k as another object.
func other(k *vmi.KubeVirt) *vmi.KubeVirt {
	k.UID = "2"
	return k
}

// at is a KubeVirt of this name and age.
func at(name string, second int64) *vmi.KubeVirt {
	k := kubevirt(vmi.KubeVirtConfiguration{})
	k.Name, k.UID, k.CreationTimestamp = name, types.UID(name), metav1.Unix(second, 0)
	return k
}

func TestTheOldestCounts(t *testing.T) {
	t.Parallel()
	require.Nil(t, config.InForce(nil))
	require.Equal(t, "b", config.InForce([]*vmi.KubeVirt{at("a", 2), at("b", 1), at("c", 3)}).Name)
	require.Equal(t, "a", config.InForce([]*vmi.KubeVirt{at("b", 1), at("a", 1)}).Name, "of the same second the first by name")
}

// Whichever object a process observes first, and whatever was reported then, every
// replica, and one that begins later, takes the same one, and one report is the
// last.
func TestAllProcessesTakeTheSameOne(t *testing.T) {
	t.Parallel()
	for _, ages := range [][2]int64{{1, 2}, {2, 1}, {1, 1}} {
		a, b := at("a", ages[0]), at("b", ages[1])
		sawA := config.NextState(config.State{}, []*vmi.KubeVirt{a})
		sawB := config.NextState(config.State{}, []*vmi.KubeVirt{b})
		a.Status, b.Status = config.Report(sawA, a, config.Components{}, noon), config.Report(sawB, b, config.Components{}, noon)
		want := map[bool]string{true: "a", false: "b"}[ages[0] <= ages[1]]
		for _, last := range []config.State{{}, sawA, sawB} {
			for _, all := range [][]*vmi.KubeVirt{{a, b}, {b, a}} {
				s := config.NextState(last, all)
				require.Equal(t, want, s.KubeVirt.Name)
				for _, k := range all {
					again := k.DeepCopy()
					again.Status = config.Report(s, k, config.Components{}, noon)
					require.Equal(t, k.Name == want, again.Status.Phase != "")
					require.Equal(t, again.Status, config.Report(s, again, config.Components{}, metav1.Now()))
				}
			}
		}
	}
}

var noon = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

// facts are the conditions as "Type=Status Reason".
func facts(s vmi.KubeVirtStatus) []string {
	var out []string
	for _, c := range s.Conditions {
		out = append(out, string(c.Type)+"="+string(c.Status)+" "+c.Reason)
	}
	return out
}

func TestReport(t *testing.T) {
	t.Parallel()
	working := []string{"Available=True AllComponentsReady", "Progressing=False AllComponentsReady", "Degraded=False AllComponentsReady", "Created=True AllResourcesCreated"}
	for name, tt := range map[string]struct {
		kubevirt   *vmi.KubeVirt
		components config.Components
		phase      vmi.KubeVirtPhase
		want       []string
	}{
		"all is well": {kubevirt: ratio(3, "2"), phase: vmi.KubeVirtPhaseDeployed, want: working},
		"not there yet": {
			kubevirt: ratio(3, "2"), components: config.Components{Waiting: "wait", Updating: "update"}, phase: vmi.KubeVirtPhaseDeploying,
			want: []string{"Available=False ComponentsNotReady", "Progressing=True UpdateInProgress", "Degraded=False AllComponentsReady", "Created=True AllResourcesCreated"},
		},
		"broken": {
			kubevirt: ratio(3, "x"), phase: vmi.KubeVirtPhaseDeployed,
			want: []string{"Available=True AllComponentsReady", "Progressing=False AllComponentsReady", "Degraded=True InvalidConfiguration", "Created=True AllResourcesCreated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.components.Version = "v1.2.3"
			s := config.NextState(config.State{}, []*vmi.KubeVirt{tt.kubevirt})
			before := tt.kubevirt.DeepCopy()
			got := config.Report(s, tt.kubevirt, tt.components, noon)
			require.Equal(t, before, tt.kubevirt, "the input is not changed")
			require.Equal(t, tt.want, facts(got))
			require.Equal(t, tt.phase, got.Phase)
			require.Equal(t, int64(3), *got.ObservedGeneration)
			require.Equal(t, "amd64", got.DefaultArchitecture)
			require.Equal(t, [2]string{"v1.2.3", "v1.2.3"}, [2]string{got.OperatorVersion, got.TargetKubeVirtVersion})
			require.Equal(t, tt.components.Waiting == "", got.ObservedKubeVirtVersion == "v1.2.3")
			tt.kubevirt.Status = got
			require.Equal(t, got, config.Report(s, tt.kubevirt, tt.components, metav1.Now()), "saying it twice changes nothing")
		})
	}
}

func TestAReportIsWhatTheNextProcessStartsFrom(t *testing.T) {
	t.Parallel()
	k := ratio(3, "2")
	s := config.NextState(config.State{}, []*vmi.KubeVirt{k})
	k.Status = config.Report(s, k, config.Components{}, noon)
	broken := ratio(4, "x")
	broken.Status = k.Status
	s = config.NextState(config.State{}, []*vmi.KubeVirt{broken})
	require.Equal(t, 2.0, s.Config.Pods.OverheadRatio)
	status := config.Report(s, broken, config.Components{}, noon)
	require.Equal(t, k.Status.ObservedDeploymentConfig, status.ObservedDeploymentConfig)
	require.Equal(t, int64(4), *status.ObservedGeneration, "it was seen, and found unusable")
	c := status.Condition(vmi.ConditionDegraded)
	require.Contains(t, c.Message, "last good configuration")
	require.Contains(t, c.Message, "spec.configuration.additionalGuestMemoryOverheadRatio")
}

func TestTheReportOnWhatCannotBeDecodedNamesTheFieldAndTheValue(t *testing.T) {
	t.Parallel()
	k := known(unreadable(ratio(4, "2")), 3, "3")
	s := config.NextState(config.State{}, []*vmi.KubeVirt{k})
	status := config.Report(s, k, config.Components{}, noon)
	require.Equal(t, k.Status.ObservedDeploymentConfig, status.ObservedDeploymentConfig)
	c := status.Condition(vmi.ConditionDegraded)
	require.Equal(t, "InvalidConfiguration", c.Reason)
	require.Equal(t, "the last good configuration stays in force: spec.configuration.cpuRequest: Invalid value: {}: must be a quantity", c.Message)
}

func TestASecondKubeVirtSaysThatItHasNoEffect(t *testing.T) {
	t.Parallel()
	first, second := at("first", 1), at("second", 2)
	s := config.NextState(config.State{}, []*vmi.KubeVirt{second, first})
	got := config.Report(s, second, config.Components{}, noon)
	require.Equal(t, []string{"Available=False ExistingDeployment", "Progressing=False ExistingDeployment", "Created=False ExistingDeployment", "Degraded=True ExistingDeployment"}, facts(got))
	require.Contains(t, got.Condition(vmi.ConditionDegraded).Message, "kubevirt/first")
	require.Empty(t, got.Phase)
	require.Equal(t, corev1.ConditionTrue, reported(s, first).Condition(vmi.ConditionAvailable).Status)
}

func reported(s config.State, k *vmi.KubeVirt) *vmi.KubeVirtStatus {
	r := config.Report(s, k, config.Components{}, noon)
	return &r
}

func TestTheStatusSaysHowManyVMIsAreOutdated(t *testing.T) {
	t.Parallel()
	k := kubevirt(vmi.KubeVirtConfiguration{})
	s := config.NextState(config.State{}, []*vmi.KubeVirt{k})
	k.Status = config.Report(s, k, config.Components{}, noon)
	require.Nil(t, k.Status.OutdatedVirtualMachineInstanceWorkloads, "they were not counted")
	k.Status = config.Report(s, k, config.Components{Outdated: new(3)}, noon)
	require.Equal(t, 3, *k.Status.OutdatedVirtualMachineInstanceWorkloads)
	k.Status = config.Report(s, k, config.Components{}, noon)
	require.Equal(t, 3, *k.Status.OutdatedVirtualMachineInstanceWorkloads, "as they were counted last")
	other := kubevirt(vmi.KubeVirtConfiguration{})
	other.UID, other.Status = "2", k.Status
	require.Nil(t, config.Report(s, other, config.Components{Outdated: new(3)}, noon).OutdatedVirtualMachineInstanceWorkloads)
}
