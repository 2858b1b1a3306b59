package effect

// firmwareArea is of firmware, kernels and TPMs.
var firmwareArea = exceptions{}
