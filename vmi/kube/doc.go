// Package kube turns what package vmi says about pods and claims into the types of
// k8s.io/api/core/v1, and back.
//
// Package vmi has types of its own for them, so that its schema changes only when
// it says so, and so that a program which only reads machines does not link the
// core API (3 MB of 14). A program that makes pods, or that takes the affinity of
// a machine from an object with core types, uses this package:
//
//	v.Spec.Affinity = kube.FromAffinity(deployment.Spec.Template.Spec.Affinity)
//
// Both sides have the same JSON, so nothing is lost from vmi to core/v1. The way
// back leaves out what the core types have and KubeVirt's API has not; a test of
// the package lists it.
package kube
