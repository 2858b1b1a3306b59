package e2e

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var manyVMIs = flag.Int("vmis", 4, "how many VMIs are created and deleted between two looks at the metrics")

// scrapedPods selects the pods whose metrics Prometheus reads.
const scrapedPods = "prometheus.kubevirt.io=true"

// event matches a series that counts one kind of event, which is there when the first of its kind
// was.
var event = regexp.MustCompile(`^(?:kubevirt_rest_client_requests_total|kubevirt_vmi(?:_migration)?_phase_transition_time_\w+)\{`)

// kinds are the labels of such a series with the values that they may have, of which there are
// few. None is a name of the tests, which have hyphens.
var kinds = regexp.MustCompile(`\b(?:method="[A-Z]+"|(?:sub)?resource="[a-z]*"|code="(?:[1-5]\d\d|error)"|(?:last_)?phase="[A-Za-z]*")`)

// series are the names and labels of all series that each pod of Podvisor serves.
func (s space) series() (map[string][]string, error) {
	s.t.Helper()
	pods, err := world.kube.CoreV1().Pods(install.Namespace).List(s.t.Context(), metav1.ListOptions{LabelSelector: scrapedPods})
	if err != nil {
		return nil, err
	}
	require.Len(s.t, pods.Items, 4, "two of virt-controller, and one of virt-handler on each node")
	all := map[string][]string{}
	for _, p := range pods.Items {
		text, err := s.metrics(p.Name)
		if err != nil {
			return nil, err
		}
		var found []string
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			one := line[:strings.LastIndex(line, " ")]
			if event.MatchString(one) {
				one = kinds.ReplaceAllString(one, "some")
			}
			found = append(found, one)
		}
		slices.Sort(found)
		all[p.Name] = slices.Compact(found)
	}
	return all, nil
}

// differ says what two results of series do not have in common.
func differ(before, now map[string][]string) error {
	for pod := range before {
		for _, change := range []struct {
			what      string
			from, not []string
		}{{"more", now[pod], before[pod]}, {"less", before[pod], now[pod]}} {
			for _, one := range change.from {
				if _, is := slices.BinarySearch(change.not, one); !is {
					return fmt.Errorf("%s has %s series than before: %s", pod, change.what, one)
				}
			}
		}
	}
	return nil
}

// watchedVMI is a VMI, or a VM with one if its number is odd.
func (s space) watchedVMI(i int) {
	v := guest(fmt.Sprintf("watched-%d", i), cloudConfig("hostname: watched"), vmitest.WithGracePeriod(1))
	if i%2 == 0 {
		s.create(v)
		return
	}
	s.applyVM(vmi.RunAlways, v)
}

// comeAndGo creates so many VMIs, a few at a time, and deletes each when it runs.
func (s space) comeAndGo(n int) {
	s.t.Helper()
	const atOnce = 4
	for first := 0; first < n; first += atOnce {
		batch := min(atOnce, n-first)
		for i := range batch {
			s.watchedVMI(first + i)
		}
		var all []*vmi.VirtualMachineInstance
		for i := range batch {
			all = append(all, s.awaitPhase(fmt.Sprintf("watched-%d", first+i), vmi.PhaseRunning))
		}
		eventually(s.t, soon, func() error {
			series, err := s.series()
			if err != nil {
				return err
			}
			served := fmt.Sprint(series)
			for _, v := range all {
				for _, metric := range []string{"kubevirt_vmi_vcpu_seconds_total", "kubevirt_vmi_info"} {
					if !regexp.MustCompile(metric + `\{[^}]*name="` + v.Name + `",namespace="` + s.name + `"`).MatchString(served) {
						return fmt.Errorf("%s of VMI %s is not served", metric, v.Name)
					}
				}
			}
			return nil
		})
		for i, v := range all {
			if i%2 == 0 {
				s.delete(v.Name)
				continue
			}
			require.NoError(s.t, world.vmis.VirtualMachines(s.name).Delete(s.t.Context(), v.Name, metav1.DeleteOptions{}))
		}
		for _, v := range all {
			s.awaitGone(v)
		}
	}
}

// The first two VMIs make what is counted of all.
func TestNoSeriesOutlivesItsVMI(t *testing.T) {
	s := newSpace(t)
	eventually(t, long, func() error {
		l, err := world.vmis.VirtualMachineInstances("").List(t.Context(), metav1.ListOptions{})
		if err == nil && len(l.Items) > 0 {
			err = fmt.Errorf("%d VMIs of other tests are left", len(l.Items))
		}
		return err
	})
	s.comeAndGo(2)
	var before map[string][]string
	eventually(t, soon, func() (err error) {
		if before, err = s.series(); err == nil && strings.Contains(fmt.Sprint(before), s.name) {
			err = fmt.Errorf("series of the first VMIs are left")
		}
		return err
	})
	s.comeAndGo(*manyVMIs)
	eventually(t, soon, func() error {
		now, err := s.series()
		return errors.Join(err, differ(before, now))
	})
	for pod, all := range before {
		t.Logf("%s serves %d series, before and after %d VMIs", pod, len(all), *manyVMIs)
	}
}
