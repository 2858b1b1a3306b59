package nft

import (
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/network"
)

// Render returns the rules for the address translations of a pod as "nft -f"
// reads them. It is empty if there is nothing to translate.
func Render(all []network.NAT) string {
	var b strings.Builder
	for i, t := range tables(all) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "table %s %s {\n", t.family(), tableName)
		for j, c := range t.Chains {
			if j > 0 {
				b.WriteByte('\n')
			}
			c.write(&b, t)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func (c chain) write(b *strings.Builder, t table) {
	fmt.Fprintf(b, "\tchain %s {\n\t\ttype nat hook %s priority %s; policy accept;\n", c.Hook, c.Hook, c.priority())
	for _, r := range c.Rules {
		fmt.Fprintf(b, "\t\t%s\n", r.text(t))
	}
	b.WriteString("\t}\n")
}

// text is one rule.
func (r rule) text(t table) string {
	var words []string
	if r.Out != "" {
		words = append(words, fmt.Sprintf("oifname %q", r.Out))
	}
	if r.From.IsValid() {
		words = append(words, t.family(), "saddr", r.From.String())
	}
	if r.To.IsValid() {
		words = append(words, t.family(), "daddr", r.To.String())
	}
	if len(r.Ports) > 0 {
		words = append(words, r.Protocol, "dport", list(r.Ports))
	}
	words = append(words, string(r.Verdict))
	if r.Address.IsValid() {
		words = append(words, "to", r.Address.String())
	}
	return strings.Join(words, " ")
}

func list(ports []uint16) string {
	if len(ports) == 1 {
		return fmt.Sprint(ports[0])
	}
	return "{ " + strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]") + " }"
}

func (t table) family() string {
	if t.IPv6 {
		return "ip6"
	}
	return "ip"
}

// priority is the usual one of address translation.
func (c chain) priority() string {
	switch c.Hook {
	case postrouting:
		return "srcnat"
	case prerouting:
		return "dstnat"
	default:
		return "-100"
	}
}

func numbers(ports []network.Port, protocol string) []uint16 {
	var out []uint16
	for _, p := range ports {
		if strings.EqualFold(p.Protocol, protocol) {
			out = append(out, p.Number)
		}
	}
	return out
}
