package carry

import (
	"context"
	"net"
	"time"
)

// FinishIn and BothIn are Finish and Both with another limit: on a busy host the other side
// may take longer than some seconds to read what was written.

func FinishIn(lingers time.Duration, c net.Conn) { finish(c, lingers) }

func BothIn(ctx context.Context, lingers time.Duration, a, b net.Conn) {
	sides{a, b, lingers}.join(ctx, &pool)
}
