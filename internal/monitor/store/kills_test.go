//go:build !monitortest

package store

const standardKills = 15
