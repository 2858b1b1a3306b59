package effect

// nodeArea is of where a VMI runs and what it takes there.
var nodeArea = exceptions{}
