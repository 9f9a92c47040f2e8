package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/slipway-dev/slipway/internal/gateway"
)

// serve runs slipway-gateway with the flags that the measurement needs, and writes a profile of its processor time.
func serve(ctx context.Context, args []string) error {
	options := gateway.Options{Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.StringVar(&options.ConfigFile, "config", "", "configuration")
	flags.StringVar(&options.HTTP, "http", "", "where to listen")
	flags.StringVar(&options.Admin, "admin", "", "where to listen for the admin port")
	flags.DurationVar(&options.DrainDelay, "drain-delay", 0, "how long to go on serving after the signal to end")
	accessLog := flags.Bool("access-log", false, "write the access log to standard output")
	profile := flags.String("cpuprofile", "", "file for the profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *accessLog {
		options.AccessLog = os.Stdout
	}
	file, err := os.Create(*profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = gateway.Run(ctx, options)
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// profiled is the gateway inside of this program, which writes a profile to a file.
func profiled(p proxy, path string) (proxy, error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	// The program runs in a folder of its own.
	if path, err = filepath.Abs(path); err != nil {
		return p, err
	}
	args := p.args
	p.binary = self
	p.args = func(c settings) []string {
		return append([]string{"serve", "-cpuprofile", path}, args(c)...)
	}
	return p, nil
}
