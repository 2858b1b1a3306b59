package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// offloadFilter is the name by which the filter of a tap device is known. It changes with
// what the filter does.
const offloadFilter = "podvisor-offloads-1"

// Where the filter is: each filter of a device has a priority and a number.
const filterPriority, filterHandle = 1, 1

// checkOffloads has the tap device drop what [network.LinkConfig.CheckOffloads] says, by a
// program that the kernel runs for each frame before any bridge sees it. It stays when
// this process ends.
func (a *actor) checkOffloads(l netlink.Link) error {
	places, err := findPlaces()
	if err != nil {
		return err
	}
	program, err := load(offloads(places))
	if err != nil {
		return fmt.Errorf("load the program into the kernel: %w", err)
	}
	defer unix.Close(program)
	return addFilter(a.h, l, program, offloadFilter)
}

// addFilter has the kernel run a loaded program for each frame that comes by the device.
func addFilter(h *netlink.Handle, l netlink.Link, program int, name string) error {
	index := l.Attrs().Index
	if err := h.QdiscReplace(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}); err != nil {
		return fmt.Errorf("make the place for filters: %w", err)
	}
	return wrap(h.FilterReplace(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: filterHandle, Priority: filterPriority, Protocol: unix.ETH_P_ALL},
		Fd:          program, Name: name, DirectAction: true,
	}), "add the filter")
}

// checksOffloads says that the tap device has the filter.
func checksOffloads(l netlink.Link) (bool, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETTFILTER, unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{
		Family: nl.FAMILY_ALL, Ifindex: int32(l.Attrs().Index), Parent: netlink.HANDLE_MIN_INGRESS, Handle: filterHandle,
		Info: netlink.MakeHandle(filterPriority, nl.Swap16(unix.ETH_P_ALL)),
	})
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWTFILTER)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) { // no such filter, or no place for any
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, m := range answers {
		attributes, err := nl.ParseRouteAttr(m[nl.SizeofTcMsg:])
		if err != nil {
			return false, err
		}
		for _, of := range attributes {
			if of.Attr.Type&nl.NLA_TYPE_MASK != nl.TCA_OPTIONS {
				continue
			}
			options, err := nl.ParseRouteAttr(of.Value)
			if err != nil {
				return false, err
			}
			for _, o := range options {
				if o.Attr.Type == nl.TCA_BPF_NAME && strings.TrimRight(string(o.Value), "\x00") == offloadFilter {
					return true, nil
				}
			}
		}
	}
	return false, nil
}

// places are where the kernel's struct sk_buff, a packet, has its members.
type places struct{ summed, start, offset, mac member }

// findPlaces finds them for the kernel that runs.
func findPlaces() (places, error) {
	var p places
	b, err := os.ReadFile(kernelTypes)
	if err != nil {
		return p, fmt.Errorf("the node's kernel must be built with CONFIG_DEBUG_INFO_BTF: %w", err)
	}
	t, err := parseTypes(b)
	if err != nil {
		return p, fmt.Errorf("read %s: %w", kernelTypes, err)
	}
	for name, to := range map[string]*member{"ip_summed": &p.summed, "csum_start": &p.start, "csum_offset": &p.offset, "mac_header": &p.mac} {
		if *to, err = t.member("sk_buff", name); err != nil {
			return p, err
		}
	}
	return p, nil
}

// load loads a program for frames and returns its descriptor.
func load(p program) (int, error) {
	code := p.bytes()
	// The kernel gives the function that reads its memory to programs of such licences alone.
	license := []byte("Dual MIT/GPL\x00")
	// The beginning of union bpf_attr for BPF_PROG_LOAD.
	request := struct {
		kind, count       uint32
		code, license     uint64
		logLevel, logSize uint32
		log               uint64
		version, flags    uint32
	}{
		kind: uint32(netlink.BPF_PROG_TYPE_SCHED_CLS), count: uint32(len(code) / instructionLength),
		code: uint64(uintptr(unsafe.Pointer(&code[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	const progLoad, attempts = 5, 100 // BPF_PROG_LOAD
	for n := 1; ; n++ {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, progLoad, uintptr(unsafe.Pointer(&request)), unsafe.Sizeof(request))
		runtime.KeepAlive(code)
		runtime.KeepAlive(license)
		switch {
		case errno == 0:
			return int(fd), nil
		// The kernel stops where it finds a signal, and the runtime of Go sends some.
		case (errno == unix.EAGAIN || errno == unix.EINTR) && n < attempts:
		default:
			return -1, errno
		}
	}
}

// instruction is one of the kernel's virtual machine for BPF (RFC 9669).
type instruction struct {
	op       byte
	to, from register
	jump     label
	offset   int16
	value    int32
}

const instructionLength = 8

type register byte

const (
	r0 register = iota
	r1
	r2
	r3
	r4
	_
	r6
	r7
	_
	_
	stack
)

// label is the name of a place in a program. Empty: the next instruction.
type label string

// program is a list of instructions. Those with a label alone are places to jump to.
type program []instruction

// The operations that are used.
const (
	loadByte, loadHalf   = 0x71, 0x69
	move, moveValue      = 0xbf, 0xb7
	addValue, sub        = 0x07, 0x1f
	andValue, shiftLeft  = 0x57, 0x67
	shiftRight           = 0x77
	toBigEndian          = 0xdc
	jumpTo               = 0x05
	ifEqual, ifNot       = 0x15, 0x55
	ifRegistersNot       = 0x5d
	callFunction, finish = 0x85, 0x95
	place                = 0
)

// bytes is the program as the kernel takes it.
func (p program) bytes() []byte {
	at, labels := 0, map[label]int{}
	for _, i := range p {
		if i.op == place {
			labels[i.jump] = at
		} else {
			at++
		}
	}
	var out []byte
	for _, i := range p {
		if i.op == place {
			continue
		}
		if i.jump != "" {
			i.offset = int16(labels[i.jump] - len(out)/instructionLength - 1)
		}
		out = append(out, i.op, byte(i.to)|byte(i.from)<<4)
		out = binary.NativeEndian.AppendUint16(out, uint16(i.offset))
		out = binary.NativeEndian.AppendUint32(out, uint32(i.value))
	}
	return out
}

// offloads is the program that drops frames whose checksum is to be written anywhere but
// into the TCP or UDP that follows their header of IPv4 or IPv6: fragments and headers in
// between too, with which no guest leaves a checksum to the hardware.
func offloads(at places) program {
	const (
		readFrame, readKernel  = 26, 113 // bpf_skb_load_bytes, bpf_probe_read_kernel
		toHardware             = 3       // CHECKSUM_PARTIAL
		pass, shot             = 0, 2    // TC_ACT_OK, TC_ACT_SHOT
		word, head, headLength = -8, -24, 12
		// Of what is read, which begins with the type in the frame: the length of the header
		// and the protocol of IPv4, its fragment, and the protocol of IPv6.
		length4, fragment4, protocol4, protocol6 = head + 2, head + 8, head + 11, head + 8
		ethernet, ipv6Length                     = 14, 40
		tcp, udp, tcpChecksum, udpChecksum       = 6, 17, 16, 6
	)
	// kernel reads a member of the packet to the stack.
	kernel := func(m member, length int32) program {
		return program{
			{op: move, to: r1, from: stack}, {op: addValue, to: r1, value: word},
			{op: moveValue, to: r2, value: length},
			{op: move, to: r3, from: r6}, {op: addValue, to: r3, value: int32(m.at())},
			{op: callFunction, value: readKernel},
			{op: ifNot, to: r0, jump: "drop"},
		}
	}
	var p program
	add := func(more ...instruction) { p = append(p, more...) }
	add(instruction{op: move, to: r6, from: r1})
	add(kernel(at.summed, 1)...)
	add(
		instruction{op: loadByte, to: r1, from: stack, offset: word},
		instruction{op: shiftRight, to: r1, value: int32(at.summed.shift())},
		instruction{op: andValue, to: r1, value: 3},
		instruction{op: ifNot, to: r1, value: toHardware, jump: "pass"},
	)
	// r7 is where the sum begins, counted from the beginning of the frame.
	add(kernel(at.start, 2)...)
	add(instruction{op: loadHalf, to: r7, from: stack, offset: word})
	add(kernel(at.mac, 2)...)
	add(instruction{op: loadHalf, to: r1, from: stack, offset: word}, instruction{op: sub, to: r7, from: r1})
	add(
		instruction{op: move, to: r1, from: r6}, instruction{op: moveValue, to: r2, value: 12},
		instruction{op: move, to: r3, from: stack}, instruction{op: addValue, to: r3, value: head},
		instruction{op: moveValue, to: r4, value: headLength}, instruction{op: callFunction, value: readFrame},
		instruction{op: ifNot, to: r0, jump: "drop"},
		instruction{op: loadHalf, to: r1, from: stack, offset: head},
		instruction{op: toBigEndian, to: r1, value: 16},
		instruction{op: ifEqual, to: r1, value: unix.ETH_P_IP, jump: "ipv4"},
		instruction{op: ifNot, to: r1, value: unix.ETH_P_IPV6, jump: "drop"},

		instruction{op: moveValue, to: r2, value: ethernet + ipv6Length},
		instruction{op: loadByte, to: r3, from: stack, offset: protocol6},
		instruction{op: jumpTo, jump: "compare"},

		instruction{op: place, jump: "ipv4"},
		instruction{op: loadHalf, to: r1, from: stack, offset: fragment4},
		instruction{op: toBigEndian, to: r1, value: 16},
		instruction{op: andValue, to: r1, value: 0x3fff},
		instruction{op: ifNot, to: r1, jump: "drop"},
		instruction{op: loadByte, to: r2, from: stack, offset: length4},
		instruction{op: andValue, to: r2, value: 0xf},
		instruction{op: shiftLeft, to: r2, value: 2},
		instruction{op: addValue, to: r2, value: ethernet},
		instruction{op: loadByte, to: r3, from: stack, offset: protocol4},

		// r2 is where TCP or UDP begins, r3 which of them it is.
		instruction{op: place, jump: "compare"},
		instruction{op: ifRegistersNot, to: r7, from: r2, jump: "drop"},
		instruction{op: move, to: r7, from: r3},
	)
	add(kernel(at.offset, 2)...)
	add(
		instruction{op: loadHalf, to: r1, from: stack, offset: word},
		instruction{op: ifEqual, to: r7, value: tcp, jump: "tcp"},
		instruction{op: ifNot, to: r7, value: udp, jump: "drop"},
		instruction{op: ifNot, to: r1, value: udpChecksum, jump: "drop"},
		instruction{op: jumpTo, jump: "pass"},
		instruction{op: place, jump: "tcp"},
		instruction{op: ifNot, to: r1, value: tcpChecksum, jump: "drop"},

		instruction{op: place, jump: "pass"},
		instruction{op: moveValue, to: r0, value: pass}, instruction{op: finish},
		instruction{op: place, jump: "drop"},
		instruction{op: moveValue, to: r0, value: shot}, instruction{op: finish},
	)
	return p
}
