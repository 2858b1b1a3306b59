package effect

// volumeArea is of volumes.
var volumeArea = exceptions{}
