// Package chart makes a Helm chart of Podvisor's manifests.
//
// [Write] is the main function. It renders the manifests with kustomize, the components of
// manifests/overlays among them, and makes templates of the result: the images, the
// namespace, and the fields in a table here are values of the chart. So the manifests are the one
// source: a default of the chart is what they say. The same manifests and images give the
// same bytes.
//
// The folder files/ has what no manifest says: the schema of the values, which also has their
// descriptions and order, the helpers of the templates, and the hook by which an uninstall
// begins.
//
// Traps: an object of the manifests that Helm has to treat in another way needs a rule here.
// The definitions of kinds are templates, which Helm upgrades, and are kept when the
// release is uninstalled. Helm stores the chart and all that it renders in one Secret of at
// most 1 MiB.
package chart
