package migrationpolicy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

func TestThePolicyOfAVMI(t *testing.T) {
	t.Parallel()
	policy := func(name string, s *migrationpolicy.Selectors) *migrationpolicy.MigrationPolicy {
		return &migrationpolicy.MigrationPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: migrationpolicy.MigrationPolicySpec{Selectors: s}}
	}
	type labels = map[string]string
	all := policy("all", &migrationpolicy.Selectors{})
	none := policy("a-none", nil)
	ofVMI := policy("vmi", &migrationpolicy.Selectors{VirtualMachineInstanceSelector: labels{"app": "db"}})
	ofNamespace := policy("namespace", &migrationpolicy.Selectors{NamespaceSelector: labels{"team": "a"}})
	ofBoth := policy("both", &migrationpolicy.Selectors{VirtualMachineInstanceSelector: labels{"app": "db"}, NamespaceSelector: labels{"team": "a"}})
	ofTwo := policy("two", &migrationpolicy.Selectors{NamespaceSelector: labels{"team": "a", "tier": "x"}})
	second := policy("vmi-2", &migrationpolicy.Selectors{VirtualMachineInstanceSelector: labels{"app": "db"}})
	ended := policy("a", &migrationpolicy.Selectors{VirtualMachineInstanceSelector: labels{"app": "db"}, NamespaceSelector: labels{"team": "a", "tier": "x"}})
	ended.DeletionTimestamp = &metav1.Time{}
	empty := policy("empty", &migrationpolicy.Selectors{VirtualMachineInstanceSelector: labels{"note": ""}})
	vmi, namespace := labels{"app": "db", "x": "y"}, labels{"team": "a", "tier": "x"}
	for name, tt := range map[string]struct {
		all            []*migrationpolicy.MigrationPolicy
		vmi, namespace labels
		want           *migrationpolicy.MigrationPolicy
	}{
		"there is none":                               {nil, vmi, namespace, nil},
		"without selectors it is for no VMI":          {[]*migrationpolicy.MigrationPolicy{none}, vmi, namespace, nil},
		"with empty ones for all":                     {[]*migrationpolicy.MigrationPolicy{none, all}, vmi, namespace, all},
		"also without labels":                         {[]*migrationpolicy.MigrationPolicy{all}, nil, nil, all},
		"any label is more than none":                 {[]*migrationpolicy.MigrationPolicy{all, ofNamespace}, vmi, namespace, ofNamespace},
		"a namespace counts for a VMI without labels": {[]*migrationpolicy.MigrationPolicy{ofNamespace}, nil, namespace, ofNamespace},
		"a label of the VMI before the namespace's":   {[]*migrationpolicy.MigrationPolicy{ofNamespace, ofVMI}, vmi, namespace, ofVMI},
		"the most labels":                             {[]*migrationpolicy.MigrationPolicy{ofVMI, ofTwo}, vmi, namespace, ofTwo},
		"of as many the more of the VMI":              {[]*migrationpolicy.MigrationPolicy{ofTwo, ofBoth}, vmi, namespace, ofBoth},
		"of equal ones the first name":                {[]*migrationpolicy.MigrationPolicy{second, ofVMI}, vmi, namespace, ofVMI},
		"all labels must be there":                    {[]*migrationpolicy.MigrationPolicy{ofBoth}, vmi, labels{"tier": "x"}, nil},
		"with their values":                           {[]*migrationpolicy.MigrationPolicy{ofVMI}, labels{"app": "web"}, namespace, nil},
		"a label that is not there is not empty":      {[]*migrationpolicy.MigrationPolicy{empty}, vmi, namespace, nil},
		"one that is being deleted does not count":    {[]*migrationpolicy.MigrationPolicy{ended, ofVMI}, vmi, namespace, ofVMI},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := migrationpolicy.Of(tt.all, tt.vmi, tt.namespace)
			require.True(t, tt.want == got, "%v", got)
		})
	}
}
