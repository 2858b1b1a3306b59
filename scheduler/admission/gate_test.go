package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/podvisor/podvisor/internal/testenv"
)

// reading counts the bytes that are read of a body.
type reading struct {
	io.Reader
	bytes *atomic.Int64
}

func (r reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bytes.Add(int64(n))
	return n, err
}

func TestAttackAReviewAtAnotherPathIsNotRead(t *testing.T) {
	t.Parallel()
	token := ""
	all := atSecretPaths(func() string { return token }, map[string]http.Handler{ValidationPath: Webhooks{}})
	mux := http.NewServeMux()
	for at, h := range all {
		mux.Handle(at, h)
	}
	bomb := strings.Repeat("{},", 1_000_000)
	for _, tt := range []struct {
		token, path string
		status      int
	}{
		{"", ValidationPath, http.StatusTemporaryRedirect}, {"", ValidationPath + "/", http.StatusNotFound}, {"", ValidationPath + "/secret", http.StatusNotFound},
		{"secret", ValidationPath + "/", http.StatusNotFound}, {"secret", ValidationPath + "/Secret", http.StatusNotFound},
		{"secret", ValidationPath + "/secret/", http.StatusNotFound}, {"secret", DefaultsPath + "/secret", http.StatusNotFound},
		{"secret", ValidationPath + "/secret", http.StatusBadRequest},
	} {
		token = tt.token
		var read atomic.Int64
		out := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, tt.path, reading{strings.NewReader(bomb), &read})
		r.ContentLength = int64(len(bomb))
		mux.ServeHTTP(out, r)
		require.Equal(t, tt.status, out.Code, "%+v", tt)
		require.Equal(t, tt.status == http.StatusBadRequest, read.Load() > 0, "%+v", tt)
	}
}

func TestAReviewOfUnknownOrTooLargeSizeIsRefused(t *testing.T) {
	t.Parallel()
	h := new(gate).Limit(Webhooks{})
	for size, status := range map[int64]int{-1: http.StatusLengthRequired, maxReview + 1: http.StatusRequestEntityTooLarge, 3: http.StatusBadRequest} {
		r := httptest.NewRequest(http.MethodPost, ValidationPath, strings.NewReader("{]}"))
		r.ContentLength = size
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		require.Equal(t, status, out.Code)
	}
}

func TestSmallReviewsDoNotWaitForLargeOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		var wg sync.WaitGroup
		var now, most, done atomic.Int64
		for range 100 {
			wg.Go(func() {
				leave, err := g.enter(t.Context(), 3<<20)
				require.NoError(t, err)
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Second)
				now.Add(-1)
				done.Add(1)
				leave()
			})
		}
		synctest.Wait()
		begin := time.Now()
		for range 1000 {
			leave, err := g.enter(t.Context(), 20<<10)
			require.NoError(t, err)
			leave()
		}
		require.Zero(t, time.Since(begin))
		wg.Wait()
		require.EqualValues(t, 100, done.Load())
		require.EqualValues(t, 1, most.Load())
	})
}

func TestAReviewWhoseRequestEndedDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g gate
		leave, err := g.enter(t.Context(), maxReview)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		// One waits until it ends, and what came after it then goes on.
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := g.enter(ctx, maxReview)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		wg.Go(func() {
			_, err := g.enter(ctx, smallReview+1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		wg.Wait()
		leave()
		leave, err = g.enter(t.Context(), maxReview)
		require.NoError(t, err)
		leave()
		require.True(t, g.large.TryAcquire(mostLarge), "all is given back")
	})
}

func TestAttackAMillionElementsAreRefusedByBothWebhooks(t *testing.T) {
	t.Parallel()
	disks := "[" + strings.TrimSuffix(strings.Repeat("{},", 900_000), ",") + "]"
	for _, path := range []string{DefaultsPath, ValidationPath} {
		r := ask(t, path, written(`{"domain":{"devices":{"disks":`+disks+`}}}`), "")
		require.False(t, r.Allowed)
		require.Contains(t, r.Result.Message, "spec.domain.devices.disks: Too many: must have at most 256 items")
		require.Len(t, r.Result.Details.Causes, 1)
	}
	// What was stored before there were limits may be corrected.
	r := ask(t, ValidationPath, written(`{"domain":{"memory":{"guest":"64Mi"}}}`), written(`{"tolerations":[`+strings.TrimSuffix(strings.Repeat("{},", 2000), ",")+`]}`))
	require.True(t, r.Allowed, "%v", r.Result)
}

func TestAttackFaultsWithoutNumberAreNamedInPart(t *testing.T) {
	t.Parallel()
	var labels bytes.Buffer
	for i := range 256 {
		fmt.Fprintf(&labels, `"!%d":"%s",`, i, strings.Repeat("x", 30))
	}
	r := ask(t, ValidationPath, written(`{"domain":{"memory":{"guest":"64Mi"}},"hostname":"`+strings.Repeat("A", 200_000)+`","nodeSelector":{`+strings.TrimSuffix(labels.String(), ",")+`}}`), "")
	require.False(t, r.Allowed)
	require.Len(t, r.Result.Details.Causes, 51)
	require.Contains(t, r.Result.Message, "only the first 50 faults are listed")
	require.Less(t, len(r.Result.Message), 60_000)
}

// A map is read at every placement, and again by each policy and each cache.
func TestAttackAMapOfThousandsIsRefusedByBothWebhooks(t *testing.T) {
	t.Parallel()
	entries := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`"k%d":"v"`, i)
		}
		return strings.Join(all, ",")
	}
	for _, path := range []string{DefaultsPath, ValidationPath} {
		r := ask(t, path, written(`{"domain":{"memory":{"guest":"64Mi"}},"nodeSelector":{`+entries(24_000)+`}}`), "")
		require.False(t, r.Allowed)
		require.Contains(t, r.Result.Message, "spec.nodeSelector: Too many: must have at most 256 entries")
	}
	r := ask(t, ValidationPath, written(`{"domain":{"memory":{"guest":"64Mi"}},"nodeSelector":{`+entries(256)+`}}`), "")
	require.True(t, r.Allowed, "%v", r.Result)
}

// What is within the bounds is answered soon, and its request need not be followed.
func TestAttackTheLargestObjectsAreAnsweredSoon(t *testing.T) {
	t.Parallel()
	pair := func(i int) string { return fmt.Sprintf(`"k%d":"v"`, i) }
	list := func(n int, f func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = f(i)
		}
		return strings.Join(all, ",")
	}
	for name, spec := range map[string]string{
		"strings": `{"domain":{"devices":{"disks":[{"name":"a"}]}},"volumes":[` + list(7, func(i int) string {
			return fmt.Sprintf(`{"name":"v%d","cloudInitNoCloud":{"userData":"%s"}}`, i, strings.Repeat("x<", 100_000))
		}) + `]}`,
		"a map": `{"domain":{},"nodeSelector":{` + list(256, pair) + `}}`,
		"disks": `{"domain":{"devices":{"disks":[` + list(256, func(i int) string { return fmt.Sprintf(`{"name":"d%d","disk":{"bus":"virtio"}}`, i) }) + `]}},"volumes":[` + list(256, func(i int) string { return fmt.Sprintf(`{"name":"d%d","emptyDisk":{"capacity":"1Gi"}}`, i) }) + `]}`,
		"interfaces": `{"domain":{"devices":{"interfaces":[` + list(256, func(i int) string {
			return fmt.Sprintf(`{"name":"i%d","masquerade":{},"ports":[%s]}`, i, list(30, func(p int) string { return fmt.Sprintf(`{"port":%d}`, p) }))
		}) + `]}}}`,
		"affinity": `{"domain":{},"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + list(300, func(i int) string {
			return `{"matchExpressions":[` + list(10, func(int) string { return `{"key":"a","operator":"In","values":["b"]}` }) + `]}`
		}) + `]}}}}`,
		"tolerations":   `{"domain":{},"tolerations":[` + list(1024, func(i int) string { return fmt.Sprintf(`{"key":"%d"}`, i) }) + `]}`,
		"no quantities": `{"domain":{"resources":{"requests":{` + list(256, func(i int) string { return fmt.Sprintf(`"k%d":"1e99999"`, i) }) + `}}}}`,
	} {
		for _, path := range []string{DefaultsPath, ValidationPath} {
			var r *admissionv1.AdmissionResponse
			took := testenv.ProcessorTime(t, func() { r = ask(t, path, written(spec), "") })
			t.Logf("%s at %s: %d bytes, allowed %v, %v", name, path, len(spec), r.Allowed, took.Round(time.Millisecond))
			require.Less(t, took, 10*time.Second)
			if r.Result != nil {
				require.NotRegexp(t, `must have at most \d+ (items|entries|values)`, r.Result.Message, "it is within the bounds")
			}
		}
	}
}
