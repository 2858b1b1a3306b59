package defaults

import (
	"github.com/podvisor/podvisor/vmi"
)

func inputs(all []vmi.Input) {
	for i := range all {
		if all[i].Bus == "" {
			all[i].Bus = vmi.InputBusUSB
		}
		if all[i].Type == "" {
			all[i].Type = vmi.InputTablet
		}
	}
}

// watchdog is the device of the architecture, if the VMI names none.
func watchdog(w *vmi.Watchdog, arch string) {
	switch {
	case w == nil:
		return
	case w.I6300ESB != nil || w.Diag288 != nil:
	case arch == AMD64:
		w.I6300ESB = &vmi.I6300ESBWatchdog{}
	case arch == S390X:
		w.Diag288 = &vmi.Diag288Watchdog{}
	}
	if w.I6300ESB != nil && w.I6300ESB.Action == "" {
		w.I6300ESB.Action = vmi.WatchdogReset
	}
	if w.Diag288 != nil && w.Diag288.Action == "" {
		w.Diag288.Action = vmi.WatchdogReset
	}
}

func gpus(all []vmi.GPU) {
	for i := range all {
		if o := all[i].VirtualGPUOptions; o != nil && o.Display != nil {
			enable(o.Display.RamFB)
		}
	}
}

// probe decides how often is asked and how many answers count.
func probe(p *vmi.Probe) {
	if p == nil {
		return
	}
	for _, n := range []struct {
		field *int32
		value int32
	}{{&p.TimeoutSeconds, 1}, {&p.PeriodSeconds, 10}, {&p.SuccessThreshold, 1}, {&p.FailureThreshold, 3}} {
		if *n.field == 0 {
			*n.field = n.value
		}
	}
}
