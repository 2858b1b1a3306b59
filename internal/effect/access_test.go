package effect

// accessArea is of keys and passwords.
var accessArea = exceptions{}
