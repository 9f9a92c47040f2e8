// Command slipway-operator runs Slipway's controllers.
package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/redact/redactlog"
)

// version is set by the linker.
var version = "dev"

func main() {
	var options operator.Options
	var showVersion, development bool
	flags := pflag.NewFlagSet("slipway-operator", pflag.ExitOnError)
	addFlags(flags, &options)
	flags.BoolVar(&development, "development", false, "log for people instead of machines")
	flags.BoolVar(&showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fail(err)
	}
	if showVersion {
		fmt.Println(version)
		return
	}
	options.Namespace = cmp.Or(os.Getenv("POD_NAMESPACE"), operator.DefaultNamespace)
	if options.WebhookHost == "" {
		options.WebhookHost = fmt.Sprintf("slipway-webhook.%s.svc", options.Namespace)
	}
	options.CheckRights = true
	logger := redactlog.Logger(zap.New(zap.UseDevMode(development)))
	setLoggers(logger)
	logger.Info("starting", "version", version)

	restConfig, err := ctrl.GetConfig()
	if err != nil {
		fail(err)
	}
	if err := operator.Run(ctrl.SetupSignalHandler(), restConfig, options); err != nil {
		fail(err)
	}
}

// addFlags adds the flags that set options.
func addFlags(flags *pflag.FlagSet, options *operator.Options) {
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "where metrics are served; 0 serves none")
	flags.BoolVar(&options.MetricsAuthentication, "metrics-authentication", false, "serve metrics over TLS, and only to whom the API "+
		"server lets get /metrics; needs the right to create TokenReviews and SubjectAccessReviews")
	flags.StringVar(&options.MetricsCertificates, "metrics-certificates", "",
		"folder with tls.crt and tls.key for --metrics-authentication (default: a certificate that the operator signs itself)")
	flags.StringSliceVar(&options.Namespaces, "namespaces", nil,
		"work in these namespaces only, with no right in another but to GatewayClasses; several, or separated by commas (default all)")
	flags.StringSliceVar(&options.Controllers, "controllers", nil,
		"run these controllers only: "+strings.Join(operator.ControllerNames(), ", ")+" (default all)")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; 0 serves none")
	flags.BoolVar(&options.LeaderElection, "leader-elect", false, "run several operators, of which one acts and the others stand by")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-elect-namespace", "", "namespace of the Lease (default: the operator's own)")
	flags.DurationVar(&options.GracefulShutdownTimeout, "graceful-shutdown-timeout", 0,
		"how long work under way may take to end (default 20s)")
	flags.IntVar(&options.MaxConcurrentReconciles, "max-concurrent-reconciles", 0,
		"how many objects of a kind are worked on at a time (default 10)")
	flags.StringVar(&options.BackupImage, "backup-image", "",
		"image of slipway-backup, which reads and writes volumes (default \"slipway-backup:dev\")")
	flags.IntVar(&options.MaxBackupRuns, "max-backup-runs", 0,
		"how many BackupRuns have a pod at a time; a namespace has at most half of these places (default 10)")
	flags.BoolVar(&options.BackupHooks, "backup-hooks", false,
		"run the hooks of Backups in the pods of workloads; needs the right to create pods/exec")
	flags.BoolVar(&options.MonitorKinds, "monitor", false,
		"let the monitor read custom resources, by the rules of the ClusterRole slipway-monitor-kinds; does not go with --namespaces")
	flags.StringSliceVar(&options.MonitorInclude, "monitor-include", nil,
		"patterns of the kinds that it may read, such as *.example.com or widgets.example.com, separated by commas (default: all)")
	flags.StringSliceVar(&options.MonitorExclude, "monitor-exclude", nil, "patterns of the kinds that it may not read")
	flags.StringVar(&options.GatewayImage, "gateway-image", "",
		"image of the pods of an APIGateway that names none (default \"slipway-gateway:dev\")")
	flags.StringVar((*string)(&options.GatewayServiceType), "gateway-service-type", "",
		"type of the Services of Gateways: LoadBalancer, NodePort or ClusterIP (default LoadBalancer)")
	flags.StringSliceVar(&options.HTTPRouteGateways, "httproute-gateways", nil, "Gateways for which APIGateways may have HTTPRoutes: "+
		"namespace/name, namespace/* or *, separated by commas; who may write APIGateways gets these HTTPRoutes (default none)")
	flags.IntVar(&options.WebhookPort, "webhook-port", 0, "where admission webhooks are served; 0 serves none")
	flags.StringVar(&options.WebhookHost, "webhook-host", "", "name by which the API server calls them (default "+
		"\"slipway-webhook.NAMESPACE.svc\" with the operator's own namespace from POD_NAMESPACE, or slipway-system)")
}

// setLoggers makes every library log through the same logger.
func setLoggers(logger logr.Logger) {
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "slipway-operator:", err)
	os.Exit(1)
}
