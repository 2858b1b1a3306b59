package effect

// sharingArea is of file systems that are shared.
var sharingArea = exceptions{}
