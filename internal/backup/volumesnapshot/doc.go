// Package volumesnapshot is as much of the API group snapshot.storage.k8s.io as Slipway uses, and the decision whether a
// volume can be read from a snapshot. It is pure. A cluster need not have the group: whoever reads it must expect that.
//
//	types.go   VolumeSnapshot and VolumeSnapshotClass, with the fields that are read
//	apply.go   what is stated of a VolumeSnapshot
//	choose.go  whether, and with which class, a snapshot of a volume is taken
package volumesnapshot
