//go:build linux && csitest

package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// A writer appends numbers to two files in turn, each when the one before is on the disk. A snapshot holds both as they were at
// one moment: the first file is at most one number ahead, and no number is missing in between. Of what is not on the disk yet,
// a file system that loses power keeps what it likes, and so does a snapshot.
//
// Further files make a copy take long: csi-driver-host-path, whose snapshot is what tar reads of the folder, passes without them.
func TestASnapshotHoldsOneMoment(t *testing.T) {
	d, _ := onImage(t)
	mount := []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}}
	volume, err := d.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "v", VolumeCapabilities: mount})
	if err != nil {
		t.Fatal(err)
	}
	id := volume.Volume.VolumeId
	for i := range 8 {
		if err := os.WriteFile(filepath.Join(d.path(kindVolume, id), fmt.Sprint("more", i)), randomBytes(4<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- appendInTurn(d.path(kindVolume, id), begun, end) }()
	<-begun
	var last int
	for i := range 20 {
		made, err := d.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: fmt.Sprint("s", i), SourceVolumeId: id})
		if err != nil {
			t.Fatal(err)
		}
		folder := d.path(kindSnapshot, made.Snapshot.SnapshotId)
		a, b := count(t, filepath.Join(folder, "a")), count(t, filepath.Join(folder, "b"))
		if a != b && a != b+1 {
			t.Errorf("snapshot %d has %d and %d numbers", i, a, b)
		}
		if a < last {
			t.Errorf("snapshot %d has %d numbers, and an earlier one %d", i, a, last)
		}
		last = a
	}
	close(end)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if last < 100 {
		t.Errorf("the writer has written %d numbers only, which proves little", last)
	}
	for i := range 20 {
		if _, err := d.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: idOf(fmt.Sprint("s", i))}); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
}

// randomBytes are some that compress badly.
func randomBytes(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.Read(content) // it never fails
	return content
}

func appendInTurn(folder string, begun chan<- struct{}, end <-chan struct{}) error {
	var files []*os.File
	for _, name := range []string{"a", "b"} {
		file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		files = append(files, file)
	}
	for i := 0; ; i++ {
		for _, file := range files {
			if _, err := fmt.Fprintln(file, i); err != nil {
				return err
			}
		}
		if i == 100 {
			close(begun)
		}
		select {
		case <-end:
			return nil
		default:
		}
	}
}

// count is how many numbers a file has, from 0, with none missing. The last line may be cut off.
func count(t *testing.T, path string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); lines++ {
		if scanner.Text() != fmt.Sprint(lines) {
			t.Fatalf("%s: line %d is %q", path, lines, scanner.Text())
		}
	}
	return lines
}
