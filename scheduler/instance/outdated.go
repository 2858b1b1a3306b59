package instance

// outdated says whether the VMI runs with another launcher than a start would give it, as
// after an upgrade, and whether that is known: a launcher of which no image is written is
// not judged.
func outdated(o Observed) (is, known bool) {
	in, now := runsIn(o), o.Config.ImageOf(o.VMI)
	return in != now, in != "" && now != ""
}

// runsIn is the image of the launcher that the VMI runs in. Empty: it is not known. Right
// after a migration the status still has that of the pod that the VMI has left.
func runsIn(o Observed) string {
	switch m := o.VMI.Status.MigrationState; {
	case m == nil || !m.Completed || m.Failed:
		return o.VMI.Status.LauncherContainerImageVersion
	case o.Pods.Active == nil:
		return ""
	}
	return image(o.Pods.Active)
}
