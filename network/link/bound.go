package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrCrowded is wrapped by the error of [Observe] about a namespace that has more
// than a pod's.
var ErrCrowded = errors.New("too many for the network namespace of a pod")

// most is how many links, addresses or routes of a namespace are read. To read a
// hundred thousand takes seconds and hundreds of megabytes.
const most = 4096

// uncrowded returns an error if the namespace that the thread is in has too many
// links, addresses or routes. It reads no more of them than most.
func uncrowded() error {
	for _, of := range []struct {
		what    string
		request int
	}{{"links", unix.RTM_GETLINK}, {"addresses", unix.RTM_GETADDR}, {"routes", unix.RTM_GETROUTE}} {
		n, err := count(of.request)
		if err != nil {
			return fmt.Errorf("count %s: %w", of.what, err)
		}
		if n > most {
			return fmt.Errorf("count %s: more than %d are %w", of.what, most, ErrCrowded)
		}
	}
	return nil
}

// count is how many answers a request for all has, or some number above most.
func count(request int) (int, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer s.Close() // and the kernel stops
	timeout := nl.SocketTimeoutTv
	if err := errors.Join(s.SetSendTimeout(&timeout), s.SetReceiveTimeout(&timeout)); err != nil {
		return 0, err
	}
	req := nl.NewNetlinkRequest(request, unix.NLM_F_DUMP)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	if err := s.Send(req); err != nil {
		return 0, err
	}
	n := 0
	for n <= most {
		messages, _, err := s.Receive()
		if err != nil {
			return 0, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return n, nil
			case unix.NLMSG_ERROR:
				return 0, fmt.Errorf("the kernel answers with an error to request %d", request)
			}
			n++
		}
	}
	return n, nil
}
