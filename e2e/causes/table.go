package causes

import (
	"fmt"
	"strings"
)

// Header is the first line of a table of causes.
func Header() string { return line("mistake", "Kubernetes", "VMI", "reason", "message") }

// Line is the line of a table for a mistake. The times are in seconds; Kubernetes
// has none where it says nothing before the VMI does.
func Line(m Mistake, c Cause) string {
	known := "-"
	if c.Kubernetes != nil {
		known = fmt.Sprintf("%.2f s", c.Kubernetes.Seconds())
	}
	return line(m.Name, known, fmt.Sprintf("%.2f s", c.VMI.Seconds()), c.Reason, strings.Join(strings.Fields(c.Message), " "))
}

func line(mistake, known, said, reason, message string) string {
	return fmt.Sprintf("%-31s %10s %8s  %-21s  %s", mistake, known, said, reason, message)
}
