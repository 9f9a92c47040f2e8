// Package dump brings the output of a command from the container that runs it to the one that keeps it. It knows neither
// Kubernetes nor repositories.
//
// The two containers share nothing but a folder with a socket. The receiver listens there, and tells the first one that
// connects to run the command: no command runs before somebody is ready to keep its output, and none runs twice. What comes
// then is a stream of frames. The last one says how the command ended.
//
// The user owns the side that sends, so the receiver believes nothing of it. The property that it keeps: what it has received
// is complete only after a whole stream of well-formed frames, whose last one says that the command ended with exit code 0,
// and counts as many bytes as came, and after which the connection ends. No other bytes, in whatever order, lead there.
//
//	frame.go    the frames, and how they are written
//	reader.go   how they are read
//	receive.go  the side that listens
//	run.go      the side that runs the command
//	pipe.go     what a command writes
//	text.go     what is quoted of what a command writes
package dump
