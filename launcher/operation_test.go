package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnOperationIsDueForEachDeviceThatDiffers(t *testing.T) {
	disk := func(alias string, size int64) Device {
		return Device{Alias: alias, Name: "disk " + alias, SizeBytes: size}
	}
	nic := func(state string) Device { return Device{Alias: "nic", Name: "interface nic", Link: state} }
	for name, tt := range map[string]struct {
		desired, actual []Device
		want            []Operation
	}{
		"nothing differs":                 {[]Device{disk("a", 10), nic("up")}, []Device{nic("up"), disk("a", 10)}, nil},
		"a disk that grew":                {[]Device{disk("a", 20)}, []Device{disk("a", 10)}, []Operation{{ResizeDisk, disk("a", 20)}}},
		"a disk that shall be smaller":    {[]Device{disk("a", 10)}, []Device{disk("a", 20)}, nil},
		"a size that is not known yet":    {[]Device{disk("a", 0)}, []Device{disk("a", 20)}, nil},
		"a size that cannot be looked up": {[]Device{disk("a", 20)}, []Device{disk("a", 0)}, nil},
		"a link that shall be down":       {[]Device{nic("down")}, []Device{nic("up")}, []Operation{{SetLink, nic("down")}}},
		"an interface without a link":     {[]Device{nic("")}, []Device{nic("up")}, nil},
		"a device that is not there":      {[]Device{disk("a", 20)}, nil, nil},
		"a device that shall go":          {nil, []Device{disk("a", 20)}, nil},
		"several devices": {[]Device{nic("down"), disk("a", 20), disk("b", 20)}, []Device{disk("a", 10), disk("b", 10), nic("up")},
			[]Operation{{ResizeDisk, disk("a", 20)}, {ResizeDisk, disk("b", 20)}, {SetLink, nic("down")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, Decide(Desired{Run: true, Devices: tt.desired}, Actual{Now: noon, Domain: Running, Devices: tt.actual}).Operations)
		})
	}
}

func TestADeviceThatFailsHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	d := Desired{Run: true, Devices: []Device{{Alias: "a", Name: "disk a", SizeBytes: 20}, {Alias: "b", Name: "disk b", SizeBytes: 20}}}
	a := Actual{Now: noon, Domain: Running, Devices: []Device{{Alias: "a", SizeBytes: 10}, {Alias: "b", SizeBytes: 10}}}
	first, second := Operation{ResizeDisk, d.Devices[0]}, Operation{ResizeDisk, d.Devices[1]}
	a.Operations = a.Operations.Begin(first).End(first, errBusy, noon)
	p := Decide(d, a)
	require.Equal(t, []Operation{second}, p.Operations)
	require.Equal(t, Backoff(1), p.Recheck)
	require.Equal(t, "resize disk a to 20 bytes: busy", p.State.Finding.Message)
}

func TestAnOperationThatFailsIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	o := Operation{SetLink, Device{Alias: "a", Name: "interface a", Link: "up"}}
	none := Operations{}
	begun := none.Begin(o)
	require.Empty(t, none, "what was observed before is not changed")
	require.Equal(t, Progress{UnderWay: true}, begun[o.Key()])
	all := begun
	for n := 1; n < 8; n++ {
		all = all.Begin(o).End(o, errBusy, noon)
		require.Equal(t, n, all[o.Key()].Failures)
		require.Equal(t, noon.Add(Backoff(n)), all[o.Key()].RetryAt)
		require.ErrorIs(t, all[o.Key()].Fault, errBusy)
		require.False(t, all[o.Key()].UnderWay)
	}
	require.ErrorIs(t, all.Begin(o)[o.Key()].Fault, errBusy, "known until an attempt succeeds")
	require.Empty(t, all.Begin(o).End(o, nil, noon.Add(time.Minute)))
}

func TestEachKindOfOperationIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[OperationKind]bool{}
	for _, k := range operationKinds {
		require.NotEmpty(t, k.name)
		require.NotEmpty(t, k.reason, k.name)
		require.NotEmpty(t, k.text(Device{}), k.name)
		require.Empty(t, k.due(Desired{}, Actual{}), k.name)
		require.False(t, seen[k.name], k.name)
		seen[k.name] = true
	}
	require.Len(t, OperationKinds(), len(seen))
}
