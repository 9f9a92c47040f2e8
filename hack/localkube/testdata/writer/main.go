// Command writer writes one file to a volume and then waits to be ended.
package main

import (
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := os.WriteFile("/data/greeting", []byte("written by a pod\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	<-signals
}
