//go:build linux && csitest

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"golang.org/x/sys/unix"
)

// onImage gives a driver a file system of its own.
func onImage(t *testing.T) (*driver, string) {
	t.Helper()
	folder := t.TempDir()
	d := &driver{root: filepath.Join(folder, "root"), node: "node"}
	if err := mountImage(t.Context(), filepath.Join(folder, "image"), d.root); err != nil {
		t.Fatalf("a btrfs file system in a file: %v (root, a free loop device and btrfs-progs are needed)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.root, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if err := d.prepare(); err != nil {
		t.Fatal(err)
	}
	return d, folder
}

func TestSanity(t *testing.T) {
	d, folder := onImage(t)
	socket := filepath.Join(folder, "csi.sock")
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, socket, d.register) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	config := sanity.NewTestConfig()
	config.Address = socket
	config.TargetPath, config.StagingPath = filepath.Join(folder, "target"), filepath.Join(folder, "staging")
	sanity.Test(t, config)
	for _, kind := range []string{kindVolume, kindSnapshot} {
		left, err := os.ReadDir(d.path(kind, ""))
		if err != nil || len(left) != 0 {
			t.Errorf("%d %s are left (%v)", len(left), kind, err)
		}
	}
}
