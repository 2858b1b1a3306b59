package leader

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

const (
	// answerLimit is how long the API server may take to answer.
	answerLimit = 10 * time.Second
	// askPeriod is the time between two questions.
	askPeriod = time.Second
)

// versions asks the API server for its version until it answers.
type versions struct {
	discovery.ServerVersionInterface
	log *slog.Logger
}

// ServerVersionWithContext implements discovery.ServerVersionInterfaceWithContext. The error is
// that ctx has ended.
func (v *versions) ServerVersionWithContext(ctx context.Context) (*version.Info, error) {
	server := discovery.ToServerVersionInterfaceWithContext(v.ServerVersionInterface)
	for logged := ""; ; {
		asking, cancel := context.WithTimeout(ctx, answerLimit)
		found, err := server.ServerVersionWithContext(asking)
		cancel()
		switch {
		case err == nil:
			return found, nil
		case err.Error() != logged && ctx.Err() == nil:
			logged = err.Error()
			v.log.Warn("wait for the API server", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askPeriod):
		}
	}
}
