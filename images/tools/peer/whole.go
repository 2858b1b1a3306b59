package main

import (
	"net"
	"syscall"
)

// whole makes sockets whose datagrams are sent whole or not at all.
var whole = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		// The one or the other does not fit the socket's family.
		v4 := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER, syscall.IP_PMTUDISC_DO)
		v6 := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER, syscall.IPV6_PMTUDISC_DO)
		if v4 != nil && v6 != nil {
			failed = v4
		}
	})
	if err != nil {
		return err
	}
	return failed
}}
