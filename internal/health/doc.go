// Package health judges objects: healthy, progressing, failed, terminating or unknown, and
// why. It is pure: objects in, verdicts out. It imports no client, no clock and no logger.
//
// Reasons and messages are stable: at every retry the same problem has the same text, so a
// condition made from it does not flap. So they contain no counters, times and ports, and
// alternating states of the same problem (ErrImagePull and ImagePullBackOff) look the same.
package health
