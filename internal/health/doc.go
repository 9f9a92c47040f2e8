// Package health judges objects: is it healthy, still on its way, failed, going
// away, or unknown, and why. It is pure: objects in, verdicts out. It imports no
// client, no clock and no logger.
//
// Reasons and messages are stable: at every retry of the cluster the same trouble
// gives the same words, so a condition made of them does not flap. Counters,
// times, ports and alternating states of the same trouble (ErrImagePull and
// ImagePullBackOff) are therefore not part of them.
package health
