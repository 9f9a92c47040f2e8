// Package kindrole keeps the ClusterRole by which the monitor reads custom resources: one rule for each group, which names the
// resources of the CustomResourceDefinitions. The operator runs it, not the monitor, so the monitor cannot give itself a right.
//
// A rule for all kinds would hold Secrets, and Kubernetes cannot take a right away from a rule. So each kind is named, as soon
// as its definition exists, and until it is gone. The operator does not have these rights itself. It may escalate this one
// ClusterRole, and a ValidatingAdmissionPolicy bounds what that can come to: see SECURITY.md.
//
//	rules.go        which rules there should be, as a pure function
//	controller.go   Reconcile, which compares and writes, once a second at most
//	setup.go        what is watched, and what is kept of it
//	metrics.go      how many kinds the monitor may read, and how many not
package kindrole
