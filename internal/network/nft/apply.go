package nft

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// Apply makes the rules of a namespace those for the address translations and the
// filters of cfg: in one transaction, so that no packet passes half of them. Known
// connections keep their translation. A config without either removes the rules.
// Tables of other names are not touched.
//
// The rules name links that need not exist yet. Applied before the links are made,
// they hold from a link's first frame on.
func Apply(ns *os.File, cfg network.Config) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())), nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(transaction), c.SetReadBuffer(transaction))
	}))
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	// Each is asked for by its name: a tenant may have made any number of others.
	for _, f := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6, nftables.TableFamilyBridge} {
		switch have, err := c.ListTableOfFamily(tableName, f); {
		case err == nil:
			c.DelTable(have)
		case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EAFNOSUPPORT):
			return fmt.Errorf("look for the nftables table %s: %w", tableName, err)
		}
	}
	sets := uint32(0)
	for _, t := range tables(cfg) {
		if err := t.add(c, &sets); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("replace the nftables rules: %w", err)
	}
	return nil
}

// transaction is the room, in bytes, for the rules of all interfaces, which are sent
// at once, and for the kernel's answers, one for each rule.
const transaction = 4 << 20

// kernel is the family's number.
func (f family) kernel() nftables.TableFamily {
	switch f {
	case bridge:
		return nftables.TableFamilyBridge
	case ip6:
		return nftables.TableFamilyIPv6
	default:
		return nftables.TableFamilyIPv4
	}
}

// add adds the table, whose anonymous sets have the numbers after that of the last set.
func (t table) add(c *nftables.Conn, sets *uint32) error {
	to := c.AddTable(&nftables.Table{Name: tableName, Family: t.Family.kernel()})
	// A rule names only chains that are there.
	var chains []*nftables.Chain
	for _, ch := range t.Chains {
		chains = append(chains, c.AddChain(ch.kernel(to)))
	}
	for n, ch := range t.Chains {
		for _, r := range ch.Rules {
			e := exprs{table: to, conn: c, sets: sets}
			e.rule(r)
			if e.err != nil {
				return e.err
			}
			c.AddRule(&nftables.Rule{Table: to, Chain: chains[n], Exprs: e.list})
		}
	}
	return nil
}

func (c chain) kernel(t *nftables.Table) *nftables.Chain {
	out := &nftables.Chain{Name: c.Name, Table: t}
	if c.Hook == "" {
		return out
	}
	out.Type, out.Policy = nftables.ChainType(c.Kind), new(nftables.ChainPolicyAccept)
	out.Priority = nftables.ChainPriorityRef(nftables.ChainPriority(c.Priority))
	switch c.Hook {
	case prerouting:
		out.Hooknum = nftables.ChainHookPrerouting
	case forward:
		out.Hooknum = nftables.ChainHookForward
	case input:
		out.Hooknum = nftables.ChainHookInput
	case output:
		out.Hooknum = nftables.ChainHookOutput
	case postrouting:
		out.Hooknum = nftables.ChainHookPostrouting
	}
	return out
}

// exprs collects the expressions of one rule.
type exprs struct {
	conn  *nftables.Conn
	table *nftables.Table
	// sets is how many anonymous sets the transaction has: each has a number in it.
	sets *uint32
	list []expr.Any
	err  error
}

// register is where an expression leaves its result for the next one. One is
// enough: no rule compares two values at once.
const register = 1

func (e *exprs) add(x ...expr.Any) { e.list = append(e.list, x...) }

func (e *exprs) rule(r rule) {
	for _, m := range r.If {
		for _, t := range m.tests {
			e.test(t)
		}
	}
	e.verdict(r.Then)
}

func (e *exprs) test(t test) {
	e.load(t.load)
	if t.mask != nil {
		n := uint32(len(t.mask))
		e.add(&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: n, Mask: t.mask, Xor: make([]byte, n)})
	}
	if len(t.values) > 1 {
		e.anyOf(t)
		return
	}
	if t.last != nil {
		e.add(&expr.Range{Op: expr.CmpOpEq, Register: register, FromData: t.values[0], ToData: t.last})
		return
	}
	op := expr.CmpOpEq
	if t.not {
		op = expr.CmpOpNeq
	}
	e.add(&expr.Cmp{Op: op, Register: register, Data: t.values[0]})
}

func (e *exprs) load(l load) {
	switch l.from {
	case inLink:
		e.add(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register})
	case outLink:
		e.add(&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register})
	case protocol:
		e.add(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register})
	case fragment6:
		const header = 44
		e.add(&expr.Exthdr{DestRegister: register, Type: header, Offset: l.offset, Len: l.length, Op: expr.ExthdrOpIpv6})
	case direction:
		e.add(&expr.Ct{Key: expr.CtKeyDIRECTION, Register: register})
	default:
		base := map[source]expr.PayloadBase{
			frame: expr.PayloadBaseLLHeader, packet: expr.PayloadBaseNetworkHeader, transport: expr.PayloadBaseTransportHeader,
		}[l.from]
		e.add(&expr.Payload{DestRegister: register, Base: base, Offset: l.offset, Len: l.length})
	}
}

var setKeys = map[numbered]nftables.SetDatatype{
	ports: nftables.TypeInetService, protocols: nftables.TypeInetProto, icmpTypes: nftables.TypeICMPType,
	icmp6Types: nftables.TypeICMP6Type, igmpTypes: nftables.TypeIGMPType,
}

// anyOf looks the value up in a set of ports or of numbers of one byte.
func (e *exprs) anyOf(t test) {
	// A set without a number takes one of a counter that all connections of the process share
	// without a lock.
	*e.sets++
	set := &nftables.Set{Table: e.table, ID: *e.sets, Name: "__set%d", Anonymous: true, Constant: true, KeyType: setKeys[t.of]}
	var elements []nftables.SetElement
	for _, v := range t.values {
		elements = append(elements, nftables.SetElement{Key: v})
	}
	if err := e.conn.AddSet(set, elements); err != nil {
		e.err = fmt.Errorf("add a set of values: %w", err)
		return
	}
	e.add(&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID, Invert: t.not})
}

func (e *exprs) verdict(v verdict) {
	kinds := map[string]expr.VerdictKind{
		"accept": expr.VerdictAccept, "drop": expr.VerdictDrop, "return": expr.VerdictReturn,
		"jump": expr.VerdictJump, "goto": expr.VerdictGoto,
	}
	switch v.Kind {
	case "ether daddr set":
		const toThisHost = 0 // PACKET_HOST
		e.add(
			&expr.Immediate{Register: register, Data: bytesOf(v.MAC)},
			&expr.Payload{OperationType: expr.PayloadWrite, SourceRegister: register, Base: expr.PayloadBaseLLHeader, Offset: 0, Len: 6},
			&expr.Immediate{Register: register, Data: []byte{toThisHost}},
			&expr.Meta{Key: expr.MetaKeyPKTTYPE, SourceRegister: true, Register: register},
		)
	case "masquerade":
		e.add(&expr.Masq{})
	case "dnat", "snat":
		kind := expr.NATTypeDestNAT
		if v.Kind == "snat" {
			kind = expr.NATTypeSourceNAT
		}
		e.add(
			&expr.Immediate{Register: register, Data: v.Address.AsSlice()},
			&expr.NAT{Type: kind, Family: uint32(e.table.Family), RegAddrMin: register},
		)
	default:
		e.add(&expr.Verdict{Kind: kinds[v.Kind], Chain: v.Chain})
	}
}
