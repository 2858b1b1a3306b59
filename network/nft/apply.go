package nft

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/podvisor/podvisor/network"
)

// Apply makes the rules of a namespace those for the address translations of a
// pod: in one transaction, so that no packet passes half of them. Known
// connections keep their translation. No NAT removes the rules. Tables of other
// names are not touched.
func Apply(ns *os.File, all []network.NAT) error {
	c, err := nftables.New(nftables.WithNetNSFd(int(ns.Fd())))
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	have, err := c.ListTables()
	if err != nil {
		return fmt.Errorf("list the nftables tables: %w", err)
	}
	for _, t := range have {
		if t.Name == tableName && (t.Family == nftables.TableFamilyIPv4 || t.Family == nftables.TableFamilyIPv6) {
			c.DelTable(t)
		}
	}
	for _, t := range tables(all) {
		if err := t.add(c); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("replace the nftables rules: %w", err)
	}
	return nil
}

func (t table) add(c *nftables.Conn) error {
	family := nftables.TableFamilyIPv4
	if t.IPv6 {
		family = nftables.TableFamilyIPv6
	}
	to := c.AddTable(&nftables.Table{Name: tableName, Family: family})
	for _, ch := range t.Chains {
		in := c.AddChain(ch.kernel(to))
		for _, r := range ch.Rules {
			e := exprs{table: to, conn: c}
			e.rule(r)
			if e.err != nil {
				return e.err
			}
			c.AddRule(&nftables.Rule{Table: to, Chain: in, Exprs: e.list})
		}
	}
	return nil
}

func (c chain) kernel(t *nftables.Table) *nftables.Chain {
	out := &nftables.Chain{Name: string(c.Hook), Table: t, Type: nftables.ChainTypeNAT, Policy: new(nftables.ChainPolicyAccept)}
	switch c.Hook {
	case prerouting:
		out.Hooknum, out.Priority = nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest
	case output:
		out.Hooknum, out.Priority = nftables.ChainHookOutput, nftables.ChainPriorityNATDest
	case postrouting:
		out.Hooknum, out.Priority = nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource
	}
	return out
}

// exprs collects the expressions of one rule.
type exprs struct {
	conn  *nftables.Conn
	table *nftables.Table
	list  []expr.Any
	err   error
}

// register is where an expression leaves its result for the next one. One is
// enough: no rule compares two values at once.
const register = 1

func (e *exprs) add(x ...expr.Any) { e.list = append(e.list, x...) }

func (e *exprs) equal(data []byte) {
	e.add(&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: data})
}

func (e *exprs) rule(r rule) {
	if r.Out != "" {
		e.add(&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: register})
		// A name fills a field of 16 bytes.
		name := make([]byte, 16)
		copy(name, r.Out)
		e.equal(name)
	}
	at := addressAt(e.table.Family)
	if r.From.IsValid() {
		e.network(at.source, at.length)
		e.equal(r.From.AsSlice())
	}
	if r.To.IsValid() {
		e.network(at.destination, at.length)
		e.equal(r.To.AsSlice())
	}
	if len(r.Ports) > 0 {
		e.ports(r.Protocol, r.Ports)
	}
	e.verdict(r)
}

// network loads a part of the IP header.
func (e *exprs) network(offset, length uint32) {
	e.add(&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length})
}

// ports compares the protocol and the port.
func (e *exprs) ports(protocol string, ports []uint16) {
	e.add(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register})
	e.equal([]byte{map[string]byte{"tcp": 6, "udp": 17}[protocol]})
	// Both headers have the destination port at the same offset.
	e.add(&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	if len(ports) == 1 {
		e.equal(binary.BigEndian.AppendUint16(nil, ports[0]))
		return
	}
	set := &nftables.Set{Table: e.table, Anonymous: true, Constant: true, KeyType: nftables.TypeInetService}
	var elements []nftables.SetElement
	for _, p := range ports {
		elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, p)})
	}
	if err := e.conn.AddSet(set, elements); err != nil {
		e.err = fmt.Errorf("add the set of ports: %w", err)
		return
	}
	e.add(&expr.Lookup{SourceRegister: register, SetName: set.Name, SetID: set.ID})
}

func (e *exprs) verdict(r rule) {
	if r.Verdict == masquerade {
		e.add(&expr.Masq{})
		return
	}
	kind := expr.NATTypeDestNAT
	if r.Verdict == snat {
		kind = expr.NATTypeSourceNAT
	}
	e.add(
		&expr.Immediate{Register: register, Data: r.Address.AsSlice()},
		&expr.NAT{Type: kind, Family: uint32(e.table.Family), RegAddrMin: register},
	)
}

// addressAt says where the addresses are in the IP header of a family.
func addressAt(f nftables.TableFamily) struct{ source, destination, length uint32 } {
	if f == nftables.TableFamilyIPv6 {
		return struct{ source, destination, length uint32 }{8, 24, 16}
	}
	return struct{ source, destination, length uint32 }{12, 16, 4}
}
