package effect

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
)

// TestOddVMIsAreRenderedOrRefused gives the library VMIs with arbitrary fields, of
// which most are refused: none may end in a panic, and what is not served is found
// with and without defaults.
func TestOddVMIsAreRenderedOrRefused(t *testing.T) {
	profiles := []defaults.Profile{{}, {Architecture: defaults.ARM64}, {HotplugRatio: 7}, {Binding: defaults.Masquerade}, {NoLiveUpdate: true}}
	for seed := range uint64(300) {
		o := odd{rand.New(rand.NewPCG(seed, 2))}
		v := &vmi.VirtualMachineInstance{}
		o.fill(reflect.ValueOf(&v.Spec).Elem(), 0)
		v.Namespace, v.Name, v.UID = "default", "odd", "0b7c6f1e-2a33-4d4c-8c39-6a9d5b1f7c0d"
		p := profiles[o.IntN(len(profiles))]
		require.NotPanics(t, func() {
			_, err := pod.Render(v, pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}})
			require.True(t, err == nil || errors.Is(err, vmi.ErrInvalid), "seed %d: %v", seed, err)
			done := defaults.Instance(v, p)
			for _, either := range []*vmi.VirtualMachineInstance{v, done} {
				h := domain.Host{KVM: true, Disks: map[string]domain.Disk{}}
				for _, d := range either.Spec.Domain.Devices.Disks {
					h.Disks[d.Name] = domain.Disk{Attachment: storage.Attachment{Name: d.Name, Path: "/disk", Format: storage.Raw}}
				}
				for _, i := range either.Spec.Domain.Devices.Interfaces {
					h.Interfaces = append(h.Interfaces, network.Attachment{Name: i.Name, Tap: "tap"})
				}
				_, err = domain.Build(either, h)
				require.True(t, err == nil || errors.Is(err, vmi.ErrInvalid), "seed %d: %v", seed, err)
			}
			require.Equal(t, len(served.Faults(v, p)) == 0, len(served.Faults(done, p)) == 0, "seed %d", seed)
		}, "seed %d", seed)
	}
}

// odd fills values by chance.
type odd struct{ *rand.Rand }

// whole are the types that are set as one.
var whole = map[reflect.Type][]any{
	reflect.TypeFor[resource.Quantity]():  {resource.Quantity{}, resource.MustParse("-1"), resource.MustParse("2"), resource.MustParse("64Mi")},
	reflect.TypeFor[intstr.IntOrString](): {intstr.FromInt32(0), intstr.FromInt32(80), intstr.FromString("http")},
	reflect.TypeFor[metav1.Time]():        {metav1.Time{}},
	reflect.TypeFor[metav1.FieldsV1]():    {metav1.FieldsV1{}},
}

var (
	words = []string{"", "a", "b", "x.y", defaults.AMD64, defaults.ARM64, "virtio", "cpu", "memory"}
	// depth ends what refers to itself.
	depth = 10
)

func (o odd) fill(v reflect.Value, at int) {
	if all := whole[v.Type()]; all != nil {
		v.Set(reflect.ValueOf(all[o.IntN(len(all))]))
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		v.SetString(words[o.IntN(len(words))])
	case kind == reflect.Bool:
		v.SetBool(o.IntN(2) == 0)
	case v.CanInt():
		v.SetInt(o.Int64N(5) - 1)
	case v.CanUint():
		v.SetUint(o.Uint64N(5))
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				o.fill(v.Field(i), at+1)
			}
		}
	case at < depth:
		o.below(v, at+1)
	}
}

// below fills what may be nil.
func (o odd) below(v reflect.Value, at int) {
	switch v.Kind() {
	case reflect.Pointer:
		if o.IntN(5) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			o.fill(v.Elem(), at)
		}
	case reflect.Slice:
		n := o.IntN(3)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // raw JSON
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			o.fill(v.Index(i), at)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		o.fill(key, at)
		o.fill(value, at)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}
