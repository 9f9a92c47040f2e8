//go:build linux

// Command csi is a CSI driver for tests on a local cluster. Its volumes are subvolumes of a btrfs file system in a file, so a
// snapshot of one is atomic: it holds what was on the disk at one moment, while pods write to the volume. It enforces no sizes.
//
// It serves the controller and the node in one process, and tells the kubelet of itself, which on other clusters a sidecar
// does. hack/csi.sh runs it with the other sidecars.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	var d driver
	socket := flag.String("socket", "", "the socket that the driver serves")
	registry := flag.String("registry", "", "the kubelet's folder plugins_registry; empty: the kubelet is told nothing")
	image := flag.String("image", "", "the file that holds the file system; made if it is not there")
	flag.StringVar(&d.root, "root", "", "the folder at which the file system is mounted")
	flag.StringVar(&d.node, "node", "", "the name of the node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &d, *socket, *registry, *image); err != nil {
		fmt.Fprintln(os.Stderr, "csi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, d *driver, socket, registry, image string) error {
	if socket == "" || d.root == "" || d.node == "" {
		return errors.New("--socket, --root and --node are required")
	}
	if image != "" {
		if err := mountImage(ctx, image, d.root); err != nil {
			return err
		}
	}
	if err := d.prepare(); err != nil {
		return err
	}
	done := make(chan error, 2)
	go func() { done <- serve(ctx, socket, d.register) }()
	if registry != "" {
		go func() { done <- serveRegistration(ctx, registry, socket) }()
	}
	log.Printf("%s serves %s", driverName, socket)
	return <-done
}
