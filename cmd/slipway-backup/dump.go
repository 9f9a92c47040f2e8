package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/internal/backup/dump"
	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// The commands that run without a repository, and so without a configuration: beside the user's command, whose output another
// process keeps.
const (
	commandDump    = "dump"
	commandInstall = "install"
)

// waitingToBeAsked is logged by the side that runs the command, when it can be stopped in good order.
const waitingToBeAsked = "waiting to be asked for the dump"

// streamOf is the output of a command, for the repository.
func streamOf(c mover.Dump, hangUp *func()) *engine.StreamOptions {
	return &engine.StreamOptions{Name: c.Name, Open: func(ctx context.Context) (engine.Stream, error) {
		receiver, err := dump.Listen(c.Socket)
		if err != nil {
			return nil, dumpError(err)
		}
		output, err := receiver.Accept(ctx)
		if err != nil {
			return nil, errors.Join(dumpError(err), receiver.Close())
		}
		// The receiver stays until the end: it turns away who would run the command once more.
		*hangUp = func() { _ = errors.Join(output.Close(), receiver.Close()) }
		return stream{output}, nil
	}}
}

// stream gives what fails its kind.
type stream struct{ output *dump.Output }

func (s stream) Read(p []byte) (int, error) {
	n, err := s.output.Read(p)
	return n, dumpError(err)
}

func (s stream) Complete() error { return dumpError(s.output.Complete()) }

func dumpError(err error) error {
	var failure *dump.Failure
	if !errors.As(err, &failure) {
		return err
	}
	kind := engine.KindDumpFailed
	if failure.Lost {
		kind = engine.KindDumpLost
	}
	return &engine.Error{Kind: kind, Doing: "run the command of the dump", Err: errors.New(failure.Message)}
}

// runBeside runs a command that needs no configuration, and returns the exit code.
func runBeside(ctx context.Context, arguments []string, output io.Writer) int {
	log := slog.New(slog.NewJSONHandler(output, &slog.HandlerOptions{ReplaceAttr: newScrubber(nil).attribute}))
	var err error
	if arguments[0] == commandInstall {
		err = install(arguments[1:])
	} else {
		err = dumpCommand(ctx, log, arguments[1:])
	}
	if err != nil {
		log.Error("failed", "error", err)
		return exitInvalid
	}
	return 0
}

// dumpCommand runs the user's command once, when it is asked to, and then stays until it is stopped: it is the first process
// of a container that is restarted when it ends, and must not run the command again.
func dumpCommand(ctx context.Context, log *slog.Logger, arguments []string) error {
	flags := pflag.NewFlagSet(commandDump, pflag.ContinueOnError)
	socket := flags.String("socket", "", "socket of the process that keeps the output")
	flags.SetInterspersed(false)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *socket == "" || flags.NArg() == 0 {
		return errors.New("usage: slipway-backup dump --socket FILE -- COMMAND")
	}
	log.Info(waitingToBeAsked)
	command := dump.Command{Words: flags.Args(), Environment: os.Environ(), Errors: os.Stderr}
	if err := command.Run(ctx, *socket); err != nil && ctx.Err() == nil {
		log.Error("nobody hears of the dump", "error", err)
	}
	<-ctx.Done()
	return nil
}

// install copies this program to a place where a container of another image finds it.
func install(arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("usage: slipway-backup install FILE")
	}
	target := arguments[0]
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := os.CreateTemp(filepath.Dir(target), "install-")
	if err != nil {
		return err
	}
	_, err = io.Copy(file, source)
	if err == nil {
		err = file.Chmod(0o555) // whoever runs it is another user, maybe
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), target)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("install the program: %w", err), os.Remove(file.Name()))
	}
	return nil
}
