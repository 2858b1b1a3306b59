package effect

// diskArea is of disks and how they are read and written.
var diskArea = exceptions{}
