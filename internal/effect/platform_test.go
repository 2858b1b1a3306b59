package effect

// platformArea is of processors, timers, features and the devices that only the domain has.
var platformArea = exceptions{}
