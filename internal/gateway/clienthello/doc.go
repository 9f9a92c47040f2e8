// Package clienthello reads the first message of TLS from a connection and answers nothing, so that the connection can go on with
// whoever is meant.
//
// What is read here, the TLS of a backend reads again, and both must come to the same name. So the parser is that of crypto/tls,
// which refuses what others may read in two ways: two names, two extensions of a kind, and a final dot. A name that is none of
// DNS is refused too: a backend could cut it at a zero byte, for example. What one side reads in lower case and the other in
// upper case is the same name.
//
// Files:
//
//	hello.go  reading the message
package clienthello
