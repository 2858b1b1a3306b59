package reconcile

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

func TestClientGoLogsToTheLogger(t *testing.T) {
	var log bytes.Buffer
	ctx := WithClientLog(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	klog.FromContext(ctx).Info("list failed")
	require.Contains(t, log.String(), "list failed")
}

func TestWithoutALoggerClientGoLogsToKlog(t *testing.T) {
	for _, l := range []*slog.Logger{nil, slog.New(slog.DiscardHandler)} {
		require.Equal(t, context.Background(), WithClientLog(context.Background(), l))
	}
}
