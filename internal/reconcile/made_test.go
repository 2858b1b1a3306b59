package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestWhatWasMadeIsThereUntilTheCacheHasHadIt(t *testing.T) {
	var m Made[*vmi.VirtualMachineInstance]
	now := time.Unix(1_700_000_000, 0)
	v := vmitest.New()
	m.Note(v, now)
	require.Equal(t, v, m.Of(Key(v), now))
	require.Len(t, m.In(v.Namespace, now), 1)
	require.Empty(t, m.In("other", now))
	m.Seen(Key(v), "the one before it")
	require.NotNil(t, m.Of(Key(v), now), "another object of the name was seen")
	m.Seen(Key(v), v.UID)
	require.Nil(t, m.Of(Key(v), now))
	m.Note(v, now)
	require.Nil(t, m.Of(Key(v), now.Add(madeFor+1)), "it may have been deleted before the cache saw it")
	require.Empty(t, m.In(v.Namespace, now.Add(madeFor+1)))
}
