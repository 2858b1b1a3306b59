package controller

import (
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler/migration"
	"github.com/podvisor/podvisor/vmi"
)

// migrationSettings are those of a migration of the VMI.
func (c *Controller) migrationSettings(*vmi.VirtualMachineInstance) migration.Settings {
	return migration.Settings{Wire: protocol.MigrationSettings{SecondsPerGB: 150, ProgressSeconds: 150}}
}

// migrationLimits are the limits of the cluster.
func (c *Controller) migrationLimits() migration.Limits { return migration.Limits{} }
