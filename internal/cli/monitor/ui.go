package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/api"
)

const uiLong = `Serve the web page of the monitor on this machine, until it is interrupted. What you see is what your own credentials
may list: they are added on this machine, and no browser has them.

The address that is printed works once, in one browser, within 5 minutes. Keep it to yourself until then. Nobody else on this
machine can use the port: without the cookie that the browser gets, nothing is answered.`

type uiOptions struct {
	*command.Program
	monitorFlags
	open bool
	port int
}

// NewUICommand makes the command ui.
func NewUICommand(p *command.Program) *cobra.Command {
	o := &uiOptions{Program: p}
	cmd := &cobra.Command{
		Use: "ui", Short: "Show the web page of the monitor, with your own credentials", Long: uiLong, Args: command.NoArguments,
		Example:           "  # Open the page in a browser\n  kubectl slipway ui --open",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.AddFlags(cmd)
	cmd.Flags().BoolVar(&o.open, "open", false, "open the page in a browser")
	cmd.Flags().IntVar(&o.port, "port", 0, "the port on 127.0.0.1 (default: one that is free)")
	return cmd
}

func (o *uiOptions) run(ctx context.Context) error {
	monitor, err := newMonitorClient(ctx, o.Program, &o.monitorFlags)
	if err != nil {
		return err
	}
	defer func() { monitor.stop() }()
	// An answer now is better than one in the browser later.
	if err := monitor.ask(ctx, "whoami", url.Values{}, &api.Whoami{}); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(o.port)))
	if err != nil {
		return fmt.Errorf("listen on this machine: %w", err)
	}
	proxy, err := newUIProxy(listener.Addr().String(), monitor, o.Clock)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	proxy.again = func(ctx context.Context) (*monitorClient, error) {
		return newMonitorClient(ctx, o.Program, &o.monitorFlags)
	}
	proxy.lasting = o.account == ""
	fmt.Fprintf(
		o.Streams.Out, "The page is at\n\n  %s\n\nThe address works once. Interrupt the command (Ctrl+C) to end it.\n", proxy.entrance(),
	)
	if o.open {
		remove, err := openBrowser(ctx, proxy.entrance())
		if err != nil {
			fmt.Fprintf(o.Streams.ErrOut, "note: no browser could be opened (%v): open the address yourself\n", err)
		}
		defer remove()
	}
	return serveUntil(ctx,
		&http.Server{Handler: proxy, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 48 << 10}, listener)
}

// serveUntil serves until the context ends. Streams do not hold it back.
func serveUntil(ctx context.Context, server *http.Server, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// openBrowser opens an address. Arguments of programs can be read by every user of the machine, so what the browser is given is a
// file that only this user can read, and that leads on to the address. Remove removes it.
func openBrowser(ctx context.Context, address string) (remove func(), err error) {
	folder, err := os.MkdirTemp("", "slipway-ui-") // mode 0700
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	file := filepath.Join(folder, "open.html")
	// The address is made of letters, digits and / only.
	page := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` +
		address + `"><title>Slipway monitor</title>`
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return remove, err
	}
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	return remove, exec.CommandContext(ctx, name, args...).Start()
}
