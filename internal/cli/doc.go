// Package cli is kubectl slipway. Each command lives in a room, a package below this one: its file talks to the API server, and the
// decisions and the output are in pure functions beside it, which take what was loaded and return what to show. Rooms meet in
// root.go, and take from each other only what is in package command; app also takes the changes of an object from package monitor.
//
// The API tests are here and not in the rooms: they run whole command lines, often of several rooms, and share one API server.
package cli
