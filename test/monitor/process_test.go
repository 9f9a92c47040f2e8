//go:build monitororacle

package monitor

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// proxy is the way to the API server. It can be cut.
type proxy struct {
	listener net.Listener
	target   string

	mutex sync.Mutex
	cut   bool
	open  map[net.Conn]bool
}

func newProxy(t *testing.T, target string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = listener.Close(); p.setCut(true) })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.forward(client)
		}
	}()
	return p
}

func (p *proxy) forward(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mutex.Lock()
	p.open[client], p.open[server] = true, true
	cut := p.cut
	p.mutex.Unlock()
	end := func() { _ = client.Close(); _ = server.Close() }
	if cut {
		end()
	}
	go func() { _, _ = io.Copy(server, client); end() }()
	_, _ = io.Copy(client, server)
	end()
	p.mutex.Lock()
	delete(p.open, client)
	delete(p.open, server)
	p.mutex.Unlock()
}

// setCut cuts all connections, and new ones, or lets them be.
func (p *proxy) setCut(cut bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cut = cut
	if cut {
		for connection := range p.open {
			_ = connection.Close()
		}
	}
}

// process is slipway-monitor.
type process struct {
	t          *testing.T
	program    string
	folder     string
	kubeconfig string
	config     string
	probes     string
	log        *os.File
	command    *exec.Cmd
}

func newProcess(t *testing.T, program string, access *rest.Config, way *proxy, group string) *process {
	dir := t.TempDir()
	p := &process{t: t, program: program, folder: filepath.Join(dir, "store"), kubeconfig: filepath.Join(dir, "kubeconfig"), config: filepath.Join(dir, "config.yaml")}
	cluster := &clientcmdapi.Cluster{Server: "https://" + way.listener.Addr().String(), CertificateAuthorityData: access.CAData}
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: access.CertData, ClientKeyData: access.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.probes = free.Addr().String()
	_ = free.Close()
	p.configure(group, "")
	if p.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			said, _ := os.ReadFile(p.log.Name())
			t.Logf("the monitor said:\n%s", said[max(0, len(said)-8000):])
		}
	})
	return p
}

// configure writes the configuration, with more than what every run needs.
func (p *process) configure(group, more string) {
	p.t.Helper()
	content := fmt.Sprintf("kinds: {include: [%q]}\nstore: {folder: %q}\nlisten: {metrics: \"0\", probes: %q, api: \"0\"}\n", group, p.folder, p.probes)
	if err := os.WriteFile(p.config, []byte(content+more), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) start() {
	p.t.Helper()
	p.command = exec.Command(p.program, "--config", p.config, "--kubeconfig", p.kubeconfig)
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// end ends the program with a signal, and waits for it.
func (p *process) end(signal syscall.Signal) {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Signal(signal)
	_ = p.command.Wait()
	p.command = nil
}

// readyz is what the program says of itself.
func (p *process) readyz() (status int, said string, err error) {
	address := url.URL{Scheme: "http", Host: p.probes, Path: "/readyz"}
	response, err := (&http.Client{Timeout: time.Second}).Get(address.String())
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// ready waits until the program follows the definitions.
func (p *process) ready() {
	p.t.Helper()
	environment.Eventually(p.t, func() error {
		status, said, err := p.readyz()
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d: %s", status, said)
		}
		return err
	})
}

// says waits until /readyz says something, and the status is 200.
func (p *process) says(want string) {
	p.t.Helper()
	environment.Eventually(p.t, func() error {
		status, said, err := p.readyz()
		if err == nil && (status != http.StatusOK || said != want) {
			err = fmt.Errorf("%d: %q, want %q", status, said, want)
		}
		return err
	})
}

// lines is how many lines the program has logged.
func (p *process) lines() int {
	p.t.Helper()
	said, err := os.ReadFile(p.log.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return bytes.Count(said, []byte("\n"))
}
