// Command slipway-gateway serves the traffic of an APIGateway, or of a Gateway of the Gateway
// API.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel"
	// The image has no CA roots. Where a system has some, those are used.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/klog/v2"

	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/memory"
	"github.com/slipway-dev/slipway/internal/redact/redactlog"
)

// version is set by the linker.
var version = "dev"

func main() {
	var options gateway.Options
	var accessLog, showVersion bool
	var fetchFrom []string
	flags := pflag.NewFlagSet("slipway-gateway", pflag.ExitOnError)
	addFlags(flags, &options)
	flags.StringSliceVar(&fetchFrom, "fetch-from", nil,
		"addresses (CIDR) to fetch keys and log-ins from, of those that are refused: the pod's own, loopback, link-local, metadata")
	flags.BoolVar(&accessLog, "access-log", true, "write a line of JSON per request to standard output")
	flags.BoolVar(&showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fail(err)
	}
	if showVersion {
		fmt.Println(version)
		return
	}
	if err := check(&options, flags.Changed("https")); err != nil {
		fail(err)
	}
	for _, text := range fetchFrom {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			fail(fmt.Errorf("--fetch-from: %w", err))
		}
		options.FetchFrom = append(options.FetchFrom, prefix)
	}
	if accessLog {
		options.AccessLog = os.Stdout
	}
	options.Version = version
	options.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: redactlog.Attribute}))
	klog.SetSlogLogger(options.Log) // client-go logs through klog
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { options.Log.Warn("traces are lost", "error", err) }))
	if err := memory.KeepBelowLimit(); err != nil {
		options.Log.Warn("the container's memory limit is unknown, Go does not keep below it", "error", err)
	}
	options.Memory, _ = memory.Limit() // 0 if it is unknown
	if err := noticeDeadConnections(); err != nil {
		fail(err)
	}
	options.Log.Info("starting", "version", version)
	options.Listening = func(http, https, admin net.Addr) {
		options.Log.Info("listening", "http", addressText(http), "https", addressText(https), "admin", addressText(admin))
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := gateway.Run(ctx, options); err != nil {
		fail(err)
	}
}

// addFlags adds the flags that set options.
func addFlags(flags *pflag.FlagSet, options *gateway.Options) {
	flags.StringVar(&options.Kind, "kind", gateway.KindAPIGateway, "kind of the object to serve: APIGateway, or Gateway of the Gateway API")
	flags.StringVar(&options.Gateway, "gateway", "", "name of the object to serve, in a cluster")
	flags.StringVar(&options.Namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of the object; the default is what POD_NAMESPACE says")
	flags.StringSliceVar(&options.Namespaces, "namespaces", nil,
		"the only namespaces to read routes, Services and grants of, with --kind=Gateway; the default is all")
	flags.StringVar(&options.BorrowedCertificates, "borrowed-certificates", "",
		"Secret with the certificates of other namespaces, with --kind=Gateway")
	flags.StringVar(&options.ConfigFile, "config", "",
		"file with an APIGateway and the addresses of its backends, to run without a cluster")
	flags.StringVar(&options.HTTP, "http", ":8080", "where HTTP is served; empty for nowhere")
	flags.StringVar(&options.HTTPS, "https", "", "where HTTPS is served; empty for nowhere (the default with --gateway is :8443)")
	flags.StringVar(&options.Admin, "admin", ":8081", "where /readyz, /metrics and /revision are served; empty for nowhere")
	flags.DurationVar(&options.DrainDelay, "drain-delay", 5*time.Second, "how long to serve on after the signal to end, while not ready")
	flags.DurationVar(&options.DrainTimeout, "drain-timeout", 30*time.Second, "how long requests and streams may take to end after that")
	flags.StringVar(&options.TraceEndpoint, "otlp-endpoint", "", "collector that gets OpenTelemetry traces over HTTP, such as http://collector:4318; empty for none")
	flags.Float64Var(&options.TraceSamplePercent, "otlp-sample-percent", 10,
		"share of the requests that are traced, of those whose client has not decided it")
	options.Settings.Bind(flags)
}

// addressText returns the address as text. It is empty for a listener that does not exist.
func addressText(address net.Addr) string {
	if address == nil {
		return ""
	}
	return address.String()
}

// noticeDeadConnections makes client-go detect a dead connection to the API server. After a
// second of silence client-go sends a ping, and it waits a second for the answer. By
// default it would take 45 s. client-go can only be configured by environment variables
// here. Values that are already set are kept.
func noticeDeadConnections() error {
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, "1"); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// check fills in the defaults of the options, and returns an error for what is missing.
func check(options *gateway.Options, httpsChosen bool) error {
	switch {
	case (options.Gateway == "") == (options.ConfigFile == ""):
		return errors.New("one of --gateway and --config is required")
	case options.Kind != gateway.KindAPIGateway && options.Kind != gateway.KindGateway:
		return fmt.Errorf("--kind must be %s or %s", gateway.KindAPIGateway, gateway.KindGateway)
	case options.Kind == gateway.KindGateway && options.ConfigFile != "":
		return errors.New("--config is for an APIGateway")
	case options.Gateway != "" && options.Namespace == "":
		return errors.New("--gateway needs --namespace, or POD_NAMESPACE in the environment")
	case options.Gateway != "" && !httpsChosen:
		options.HTTPS = ":8443"
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "slipway-gateway:", err)
	os.Exit(1)
}
