// Package lock sees to it that one Job at a time writes to the repository of a Backup, or to the volume that is restored to,
// whatever the caches show, and however many operators there are.
//
// Each repository and each such volume has a Lease, which names the Job that may write. A Job is made in five steps: its name
// is written into the Lease, locked to the version that was read; Jobs and pods that may write are read past the cache; its
// owner is, too, and compared with what the Job was made from; the Job is made; the Lease is read again. A Job that still
// writes ends the second step, and an owner that has changed the third one: a stale cache would have the Job of work that is
// done made once more. A Lease that names another Job ends the fifth one, and the Job is deleted. Of two that begin at the
// same time at most one gets through: who was first into the Lease and reads its own name in the end has made its Job before
// the other one looks for Jobs.
//
// So a Job may be there for a moment beside another one, before it is deleted. A Serial keeps that from happening within one
// operator: its controllers share it.
//
// Nothing is released, and no time counts. The Lease is free when no other Job or pod still writes, so a Job that has ended
// costs no request, and an operator that dies between two steps blocks nobody. A pod counts until it has ended: one on a
// node that does not answer may still write. The Lease goes with its Backup or claim. Where it is deleted before, the Jobs and
// pods say the same.
//
// One gap is left: an operator that stops for good between the fourth and the fifth step, while another one has just begun.
// Then two Jobs may write. The engine of the repositories bears that, and removes nothing that is younger than a day. Of two
// restores that began with an empty volume the second one fails: the first one has marked the volume.
//
//	lease.go    taking the Lease, and making a Job
//	subject.go  what one Job at a time may write to
//	serial.go   one reconcile of this process at a time
package lock
