package supervise

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/render"
)

// Program is one process of a cluster.
type Program struct {
	Name    string
	Command []string
	// NeedsAPI holds the program back until the API server serves.
	NeedsAPI bool
	// Proxy passes the machine's proxy settings on: only a program that fetches
	// images needs them.
	Proxy bool
}

// Names lists the programs in the order in which they start.
var Names = []string{
	"etcd", "containerd", "kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler",
	"kube-proxy", "coredns", "provisioner", "load-balancer",
}

// Executables are the names of the files that the programs run.
var Executables = []string{"etcd", "containerd", "kubernetes", "coredns", "provisioner", "localkube"}

// Programs lists what a cluster runs.
func Programs(c cluster.Cluster) []Program {
	config := func(name string) string { return c.Path("config", name) }
	program := func(component, name string, arguments ...string) []string {
		return append([]string{filepath.Join(c.Programs[component], name)}, arguments...)
	}
	return []Program{
		{Name: "etcd", Command: program("etcd", "etcd", etcdFlags(c)...)},
		{
			Name: "containerd", Proxy: true,
			Command: program("containerd", "containerd", "--config="+config("containerd.toml")),
		},
		{Name: "kube-apiserver", Command: program("kubernetes", "kube-apiserver", apiServerFlags(c)...)},
		{Name: "kubelet", NeedsAPI: true, Command: program("kubernetes", "kubelet", kubeletFlags(c)...)},
		{
			Name: "kube-controller-manager", NeedsAPI: true,
			Command: program("kubernetes", "kube-controller-manager", controllerManagerFlags(c)...),
		},
		{
			Name: "kube-scheduler", NeedsAPI: true,
			Command: program("kubernetes", "kube-scheduler",
				"--kubeconfig="+config("scheduler.kubeconfig"),
				"--leader-elect=false",
				"--bind-address=127.0.0.1",
			),
		},
		{
			Name: "kube-proxy", NeedsAPI: true,
			Command: program("kubernetes", "kube-proxy", "--config="+config("kube-proxy.yaml")),
		},
		{
			Name: "coredns", NeedsAPI: true,
			Command: program("coredns", "coredns", "-conf="+config("Corefile")),
		},
		{
			Name: "provisioner", NeedsAPI: true,
			Command: program("provisioner", "provisioner",
				"--kubeconfig="+config("provisioner.kubeconfig"),
				"--name="+render.Provisioner,
				"--root="+c.Path("volumes"),
			),
		},
		{
			Name: "load-balancer", NeedsAPI: true,
			Command: []string{c.Program(), "balance", "--name=" + c.Name, "--state-dir=" + c.Root},
		},
	}
}

func etcdFlags(c cluster.Cluster) []string {
	flags := []string{
		"--name=" + c.Name,
		"--data-dir=" + c.Path("etcd"),
		"--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=http://127.0.0.1:2380",
		"--log-level=warn",
	}
	if !c.Fsync {
		flags = append(flags, "--unsafe-no-fsync")
	}
	return flags
}

func apiServerFlags(c cluster.Cluster) []string {
	pki := func(name string) string { return c.Path("pki", name) }
	return []string{
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + c.NodeAddress().String(),
		"--bind-address=0.0.0.0",
		"--secure-port=6443",
		"--service-cluster-ip-range=" + c.ServiceNetwork().String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
		"--cert-dir=" + c.Path("pki"),
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki("service-account.crt"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + pki("front-proxy-client.key"),
	}
}

func kubeletFlags(c cluster.Cluster) []string {
	return []string{
		"--config=" + c.Path("config", "kubelet.yaml"),
		"--kubeconfig=" + c.Path("config", "kubelet.kubeconfig"),
		"--hostname-override=" + c.Name,
		"--node-ip=" + c.NodeAddress().String(),
		"--root-dir=" + c.Path("kubelet"),
		"--cert-dir=" + c.Path("pki"),
	}
}

func controllerManagerFlags(c cluster.Cluster) []string {
	kubeconfig := c.Path("config", "controller-manager.kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--root-ca-file=" + c.Path("pki", "ca.crt"),
		"--client-ca-file=" + c.Path("pki", "ca.crt"),
		"--cluster-signing-cert-file=" + c.Path("pki", "ca.crt"),
		"--cluster-signing-key-file=" + c.Path("pki", "ca.key"),
		"--service-account-private-key-file=" + c.Path("pki", "service-account.key"),
		"--flex-volume-plugin-dir=" + c.Path("kubelet", "volumeplugins"),
		"--cert-dir=" + c.Path("pki"),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	}
}

// environment is what a program sees of the machine's environment.
func environment(c cluster.Cluster, program Program) []string {
	result := []string{
		"PATH=" + c.Programs["containerd"] + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + c.Folder(),
		"LANG=C.UTF-8",
		c.Marker(),
	}
	if !program.Proxy {
		return result
	}
	for _, setting := range os.Environ() {
		name, _, _ := strings.Cut(setting, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY":
			result = append(result, setting)
		}
	}
	return result
}
