package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
)

const (
	// apiKey is what the load sends.
	apiKey = "bench-key-0123456789abcdef"
	// routesPerHost is how many paths a host has.
	routesPerHost = 10
	bodySize      = 1024
)

//go:embed config
var configs embed.FS

// proxy is a program that is measured.
type proxy struct {
	name   string
	binary string
	// configs are its configuration files, rendered from those in config.
	configs []string
	// args are its arguments.
	args func(c settings) []string
}

// slipway is the gateway of this repository.
var slipway = proxy{name: "slipway", configs: []string{"gateway.yaml"}, args: func(c settings) []string {
	return []string{
		"--config", filepath.Join(c.Dir, "gateway.yaml"), "--http", "127.0.0.1:" + strconv.Itoa(c.Port), "--admin", "",
		"--drain-delay", "0s", "--access-log=" + strconv.FormatBool(c.Policies),
	}
}}

// known are all programs that can be measured.
var known = []proxy{
	{name: "nginx", configs: []string{"nginx.conf"}, args: func(c settings) []string {
		return []string{"-c", filepath.Join(c.Dir, "nginx.conf"), "-e", "stderr"}
	}},
	slipway,
	{name: "caddy", configs: []string{"Caddyfile"}, args: func(c settings) []string {
		return []string{"run", "--adapter", "caddyfile", "--config", filepath.Join(c.Dir, "Caddyfile")}
	}},
	{name: "traefik", configs: []string{"traefik.yaml", "traefik-routes.yaml"}, args: func(c settings) []string {
		return []string{"--configFile=" + filepath.Join(c.Dir, "traefik.yaml")}
	}},
}

// backend is what all of them forward to.
var backend = proxy{name: "backend", configs: []string{"backend.conf"}, args: func(c settings) []string {
	return []string{"-c", filepath.Join(c.Dir, "backend.conf"), "-e", "stderr"}
}}

// settings are what a configuration is rendered with.
type settings struct {
	Dir      string
	Port     int // of the proxy
	Backend  int // port of the backend
	Hosts    []host
	Policies bool
	Key      string
	KeyHash  string // SHA-256, in hexadecimal
	Body     string
}

// host is a host and the prefixes of its routes.
type host struct {
	ID    string
	Name  string
	Paths []string
}

func newSettings(dir string, s scenario, port, backendPort int) settings {
	hash := sha256.Sum256([]byte(apiKey))
	return settings{
		Dir: dir, Port: port, Backend: backendPort, Hosts: hosts(s.routes), Policies: s.policies,
		Key: apiKey, KeyHash: hex.EncodeToString(hash[:]), Body: strings.Repeat("0123456789abcdef", bodySize/16),
	}
}

// hosts spreads routes over hosts.
func hosts(routes int) []host {
	var list []host
	for i := range routes {
		if i%routesPerHost == 0 {
			id := fmt.Sprintf("app%d", len(list))
			list = append(list, host{ID: id, Name: id + ".example.test"})
		}
		last := &list[len(list)-1]
		last.Paths = append(last.Paths, fmt.Sprintf("/api/%d/", i%routesPerHost))
	}
	return list
}

// write renders the configuration of the program.
func (p proxy) write(c settings) error {
	for _, name := range p.configs {
		text, err := template.New(name+".tmpl").Option("missingkey=error").ParseFS(configs, "config/"+name+".tmpl")
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(c.Dir, name))
		if err != nil {
			return err
		}
		if err := text.Execute(file, c); err != nil {
			_ = file.Close()
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeLoad writes the script of the load, and the hosts and paths that it asks for.
func writeLoad(c settings) error {
	var paths strings.Builder
	for _, host := range c.Hosts {
		for _, path := range host.Paths {
			fmt.Fprintf(&paths, "%s %sitems/42\n", host.Name, path)
		}
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "paths"), []byte(paths.String()), 0o600); err != nil {
		return err
	}
	script, err := configs.ReadFile("config/load.lua")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, "load.lua"), script, 0o600)
}
