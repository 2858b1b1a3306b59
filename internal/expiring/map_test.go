package expiring

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var began = time.Unix(1_700_000_000, 0)

func TestAValueCountsUntilItIsOver(t *testing.T) {
	t.Parallel()
	var m Map[string, int]
	_, ok := m.Get("a", began)
	require.False(t, ok)
	m.Put("a", 1, began, time.Minute)
	m.Put("b", 2, began, 0)
	for _, tt := range []struct {
		name string
		now  time.Time
		want map[string]int
	}{
		{"at once", began, map[string]int{"a": 1, "b": 2}},
		{"at its end", began.Add(time.Minute), map[string]int{"a": 1, "b": 2}},
		{"after it", began.Add(time.Minute + 1), map[string]int{"b": 2}},
		{"a value without an end", began.Add(time.Hour), map[string]int{"b": 2}},
	} {
		require.Equal(t, tt.want, m.All(tt.now), tt.name)
		for key := range map[string]bool{"a": true, "b": true} {
			got, ok := m.Get(key, tt.now)
			want, has := tt.want[key]
			require.Equal(t, has, ok, tt.name)
			require.Equal(t, want, got, tt.name)
		}
	}
}

func TestAValueThatIsPutAgainCountsAnew(t *testing.T) {
	t.Parallel()
	var m Map[string, int]
	m.Put("a", 1, began, time.Minute)
	m.Put("a", 2, began.Add(30*time.Second), time.Minute)
	got, ok := m.Get("a", began.Add(80*time.Second))
	require.True(t, ok)
	require.Equal(t, 2, got)
	require.Equal(t, 1, m.Len())
}

func TestTheFirstValueStaysUntilItIsOver(t *testing.T) {
	t.Parallel()
	var m Map[string, int]
	require.Equal(t, 1, m.GetOrPut("a", 1, began, time.Minute))
	require.Equal(t, 1, m.GetOrPut("a", 2, began.Add(time.Minute), time.Minute))
	require.Equal(t, 3, m.GetOrPut("a", 3, began.Add(time.Minute+1), time.Minute))
}

func TestAValueIsDropped(t *testing.T) {
	t.Parallel()
	var m Map[string, int]
	m.Delete("a")
	m.DeleteIf("a", func(int) bool { return true })
	m.Put("a", 1, began, 0)
	m.DeleteIf("a", func(v int) bool { return v == 2 })
	require.Equal(t, 1, m.Len())
	m.DeleteIf("a", func(v int) bool { return v == 1 })
	require.Zero(t, m.Len())
	m.Put("a", 1, began, 0)
	m.Delete("a")
	require.Zero(t, m.Len())
}

func TestWhatIsOverIsDroppedWhenOthersArePut(t *testing.T) {
	t.Parallel()
	var m Map[int, int]
	most := 0
	for n := range 1000 { // one each second, for ten seconds
		m.Put(n, n, began.Add(time.Duration(n)*time.Second), 10*time.Second)
		most = max(most, m.Len())
	}
	require.Less(t, most, 25)
}

func TestForOneTooManyTheFirstIsDropped(t *testing.T) {
	t.Parallel()
	m := Map[string, int]{Most: 2}
	m.Put("a", 1, began, 0)
	m.Put("b", 2, began.Add(1), 0)
	m.Put("a", 3, began.Add(2), 0)
	m.Put("c", 4, began.Add(3), 0)
	require.Equal(t, map[string]int{"a": 3, "c": 4}, m.All(began.Add(3)))

	m = Map[string, int]{Most: 2}
	m.Put("a", 1, began, time.Hour)
	m.Put("b", 2, began, time.Second)
	m.Put("c", 3, began.Add(time.Minute), time.Hour)
	require.Equal(t, map[string]int{"a": 1, "c": 3}, m.All(began.Add(time.Minute)), "what is over makes room")

	var d Map[int, int]
	for n := range DefaultMost + 10 {
		d.Put(n, n, began.Add(time.Duration(n)), 0)
	}
	require.Equal(t, DefaultMost, d.Len())
}

// A put looks at few of many values, whether some are over, one has to go, or neither.
func TestAPutLooksAtFewValues(t *testing.T) {
	t.Parallel()
	const most, logarithm = 1 << 14, 14
	for name, keep := range map[string]func(n int) time.Duration{
		"none is over":            func(int) time.Duration { return 24 * time.Hour },
		"all are over in order":   func(int) time.Duration { return time.Second },
		"the last are over first": func(n int) time.Duration { return 24*time.Hour - time.Duration(2*n)*time.Second },
		"they are never over":     func(int) time.Duration { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Map[int, int]{Most: most}
			for n := range 2 * most {
				m.Put(n, n, began.Add(time.Duration(n)*time.Millisecond), keep(n))
			}
			require.LessOrEqual(t, m.ends.compared, 2*most*6*logarithm)
			require.Equal(t, m.order.Len(), m.Len())
		})
	}
}

func TestAMapIsUsedFromManyGoroutines(t *testing.T) {
	t.Parallel()
	m := Map[int, int]{Most: 50}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for n := range 500 {
				now := began.Add(time.Duration(n) * time.Millisecond)
				m.Put(n%100, g, now, 20*time.Millisecond)
				m.GetOrPut(n%90, g, now, 0)
				m.Get(n%100, now)
				m.DeleteIf(n%70, func(v int) bool { return v == g })
				m.Delete(n % 60)
				if n%50 == 0 {
					m.All(now)[0] = 1
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, m.Len(), 50)
	require.Equal(t, m.Len(), m.order.Len())
	for at, k := range m.ends.of {
		require.Equal(t, at, k.at)
		require.Same(t, k, m.values[k.key])
	}
}
