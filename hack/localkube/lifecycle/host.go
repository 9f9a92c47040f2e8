package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// elsewhere ends every refusal, because any other cluster works as well.
const elsewhere = "Any other cluster (kind, minikube, a remote one) works instead: point KUBECONFIG at it and use `make up " +
	"CLUSTER=existing`."

// needed lists the Debian packages, each with a file of it that the cluster uses.
var needed = []struct {
	name string
	// program is looked up in PATH; path is a file.
	program, path string
}{
	{name: "runc", program: "runc"},
	{name: "containernetworking-plugins", path: CNIPlugins + "/bridge"},
	{name: "nftables", program: "nft"},
	{name: "iproute2", program: "ip"},
	{name: "util-linux", program: "nsenter"},
	{name: "mount", program: "mount"},
}

// CNIPlugins is where Debian keeps the network plugins.
const CNIPlugins = "/usr/lib/cni"

// CheckHost says in one sentence what this machine lacks to run a cluster.
func CheckHost() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf(
			"a local cluster needs root, for containers and network namespaces; run the same command with sudo. %s", elsewhere,
		)
	}
	return nil
}

// EnsurePackages installs the Debian packages that are missing.
func EnsurePackages(ctx context.Context, progress io.Writer) error {
	missing := missingPackages()
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("these Debian packages are missing: %s. There is no apt-get here: install the same programs with the system's "+
			"own package manager. %s", list, elsewhere)
	}
	fmt.Fprintf(progress, "installing packages: %s\n", list)
	install := append([]string{"install", "--yes", "--no-install-recommends"}, missing...)
	if err := apt(ctx, install...); err != nil {
		// The package lists may be old or never fetched.
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		if err := apt(ctx, install...); err != nil {
			return err
		}
	}
	if missing := missingPackages(); len(missing) > 0 {
		return fmt.Errorf("still missing after installing: %s", strings.Join(missing, " "))
	}
	return nil
}

func missingPackages() []string {
	var missing []string
	for _, item := range needed {
		if item.program != "" && isInstalled(item.program) {
			continue
		}
		if item.path != "" {
			if _, err := os.Stat(item.path); err == nil {
				continue
			}
		}
		missing = append(missing, item.name)
	}
	return missing
}

func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func apt(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, "apt-get", arguments...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(arguments, " "), err, output)
	}
	return nil
}
