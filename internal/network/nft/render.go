package nft

import (
	"fmt"
	"strings"

	"github.com/podvisor/podvisor/network"
)

// Render returns the rules for a pod as "nft -f" reads them. It is empty if there
// is nothing to translate and to filter.
func Render(cfg network.Config) string {
	var b strings.Builder
	for i, t := range tables(cfg) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "table %s %s {\n", t.Family, tableName)
		for j, c := range t.Chains {
			if j > 0 {
				b.WriteByte('\n')
			}
			c.write(&b)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func (c chain) write(b *strings.Builder) {
	fmt.Fprintf(b, "\tchain %s {\n", c.Name)
	if c.Hook != "" {
		fmt.Fprintf(b, "\t\ttype %s hook %s priority %d; policy accept;\n", c.Kind, c.Hook, c.Priority)
	}
	for _, r := range c.Rules {
		fmt.Fprintf(b, "\t\t%s\n", r.text())
	}
	b.WriteString("\t}\n")
}

// text is one rule.
func (r rule) text() string {
	var words []string
	for _, m := range r.If {
		words = append(words, m.text)
	}
	words = append(words, r.Then.Kind)
	if r.Then.Chain != "" {
		words = append(words, r.Then.Chain)
	}
	if r.Then.Address.IsValid() {
		words = append(words, "to", r.Then.Address.String())
	}
	if r.Then.MAC != "" {
		words = append(words, r.Then.MAC, "meta pkttype set host")
	}
	return strings.Join(words, " ")
}
