package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	tests := map[string]struct {
		stat        string
		wantStarted uint64
		wantZombie  bool
		wantErr     bool
	}{
		"running":              {stat: "7 (etcd) S" + rest, wantStarted: 4711},
		"zombie":               {stat: "7 (etcd) Z" + rest, wantStarted: 4711, wantZombie: true},
		"spaces in its name":   {stat: "7 (a b c) S" + rest, wantStarted: 4711},
		"brackets in its name": {stat: "7 (a) S 1 2) S" + rest, wantStarted: 4711},
		"empty":                {stat: "", wantErr: true},
		"too short":            {stat: "7 (etcd) S 1 2 3", wantErr: true},
		"not a number":         {stat: "7 (etcd) S" + strings.Replace(rest, "4711", "x", 1), wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			started, zombie, err := parseStat([]byte(test.stat))
			if (err != nil) != test.wantErr {
				t.Fatalf("parseStat: %v, want error %t", err, test.wantErr)
			}
			if err == nil && (started != test.wantStarted || zombie != test.wantZombie) {
				t.Errorf("parseStat = %d, %t, want %d, %t", started, zombie, test.wantStarted, test.wantZombie)
			}
		})
	}
}

func sleeper(t *testing.T, environment ...string) (Identity, *exec.Cmd) {
	t.Helper()
	command := exec.Command("sleep", "600")
	command.Env = append(os.Environ(), environment...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	identity, err := Identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return identity, command
}

func TestStop(t *testing.T) {
	identity, _ := sleeper(t)
	if !identity.Alive() {
		t.Fatal("a new process is not alive")
	}
	if err := identity.Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	if identity.Alive() {
		t.Error("a stopped process is alive")
	}
	if err := identity.Stop(time.Second); err != nil {
		t.Errorf("stopping it once more: %v", err)
	}
}

// A number that the kernel has given to another process is left alone.
func TestSignalOnlyTheSameProcess(t *testing.T) {
	identity, _ := sleeper(t)
	others := map[string]Identity{
		"other start time": {PID: identity.PID, Started: identity.Started - 1, Boot: identity.Boot},
		"other boot":       {PID: identity.PID, Started: identity.Started, Boot: "another"},
		"no process":       {},
	}
	for name, other := range others {
		if other.Alive() {
			t.Errorf("%s: is taken for the same process", name)
		}
		if other.PID == 0 {
			continue
		}
		if err := other.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !identity.Alive() {
		t.Error("the process was ended under another identity")
	}
}

func TestMarked(t *testing.T) {
	setting := "SLIPWAY_TEST=" + t.TempDir()
	identity, _ := sleeper(t, setting)
	// Until the child has become sleep it has this process' environment.
	deadline := time.Now().Add(10 * time.Second)
	for {
		found, err := Marked(setting)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0] == identity {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("Marked = %v, want %v", found, identity)
		}
	}
	if found, err := Marked(setting + "x"); err != nil || len(found) != 0 {
		t.Errorf("Marked with another setting = %v, %v", found, err)
	}
}

func TestHasSetting(t *testing.T) {
	environment := []byte("A=1\x00B=2\x00")
	for setting, want := range map[string]bool{"A=1": true, "B=2": true, "A=": false, "A=12": false, "C=3": false} {
		if got := hasSetting(environment, setting); got != want {
			t.Errorf("hasSetting(%q) = %t, want %t", setting, got, want)
		}
	}
}

func TestInNetworkOfAPlainFileOrOurOwnNamespace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "net")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, "/proc/self/ns/net"} {
		if found, err := InNetwork(path); err != nil || found != nil {
			t.Errorf("InNetwork(%s) = %v, %v, want nothing", path, found, err)
		}
	}
}

func TestInNetworkWithoutNamespace(t *testing.T) {
	if found, err := InNetwork(t.TempDir() + "/missing"); err != nil || found != nil {
		t.Errorf("InNetwork = %v, %v, want nothing", found, err)
	}
}

func TestInheritNothing(t *testing.T) {
	// Unlike os.Open, this leaves the file open in programs that are started.
	inherited, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(inherited) }()
	open := func() bool {
		err := exec.Command("test", "-e", fmt.Sprintf("/proc/self/fd/%d", inherited)).Run()
		return err == nil
	}
	if !open() {
		t.Fatal("the file is not inherited to begin with")
	}
	if err := InheritNothing(); err != nil {
		t.Fatal(err)
	}
	if open() {
		t.Error("a program that was started has the file open")
	}
}
