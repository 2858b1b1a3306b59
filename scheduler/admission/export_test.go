package admission

// AtSecretPaths is for tests of other packages' webhooks with a token of their own.
var AtSecretPaths = atSecretPaths
