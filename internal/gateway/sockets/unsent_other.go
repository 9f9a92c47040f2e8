//go:build !linux

package sockets

func boundUnsent(uintptr) {}
