//go:build attack

package gatewayattack

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// server is a real server, with an application behind it that tells the recorder what it was given.
type server struct {
	name     string
	programs []string // the first that is there is run
	// files are templates, by name.
	files map[string]string
	// command are its arguments, templates as well.
	command []string
	// environment is added to ours.
	environment []string
}

// place is what the templates know.
type place struct {
	Folder   string
	Address  string // where to listen
	Port     string
	Lenient  string // a second port, for Tomcat
	Recorder string // where to report
	Another  string // where Tomcat reports what came on its second port
	Gateway  string // for a server in front of the gateway
	Zones    []string
}

var servers = []server{
	nginx(nginxConf),
	{
		name: "apache", programs: []string{"apache2", "httpd"},
		files:   map[string]string{"httpd.conf": apacheConf},
		command: []string{"-d", "{{.Folder}}", "-f", "{{.Folder}}/httpd.conf", "-D", "FOREGROUND"},
	},
	haproxy(haproxyConf),
	{
		name: "tomcat", programs: []string{"java"},
		files: map[string]string{"conf/server.xml": tomcatServer, "conf/web.xml": tomcatDefaults, "webapps/ROOT/WEB-INF/web.xml": tomcatWeb, "webapps/ROOT/WEB-INF/seen.jsp": tomcatApplication, "temp/empty": ""},
		command: []string{
			"-Xmx256m", "-cp", "/usr/share/tomcat10/bin/bootstrap.jar:/usr/share/tomcat10/bin/tomcat-juli.jar", "-Dcatalina.home=/usr/share/tomcat10",
			"-Dcatalina.base={{.Folder}}", "-Djava.io.tmpdir={{.Folder}}/temp", "org.apache.catalina.startup.Bootstrap", "start",
		},
	},
	{
		name: "node", programs: []string{"nodejs", "node"},
		files:   map[string]string{"server.js": nodeApplication},
		command: []string{"{{.Folder}}/server.js"},
	},
}

func nginx(conf string) server {
	return server{
		name: "nginx", programs: []string{"nginx"},
		files:   map[string]string{"nginx.conf": conf},
		command: []string{"-p", "{{.Folder}}", "-c", "{{.Folder}}/nginx.conf", "-e", "{{.Folder}}/error.log"},
	}
}

func haproxy(conf string) server {
	return server{
		name: "haproxy", programs: []string{"haproxy"},
		files:   map[string]string{"haproxy.cfg": conf},
		command: []string{"-db", "-f", "{{.Folder}}/haproxy.cfg"},
	}
}

const nginxHead = `daemon off;
user root;
worker_processes 1;
pid {{.Folder}}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path {{.Folder}}/body;
  proxy_temp_path {{.Folder}}/proxy;
  fastcgi_temp_path {{.Folder}}/fastcgi;
  uwsgi_temp_path {{.Folder}}/uwsgi;
  scgi_temp_path {{.Folder}}/scgi;
  proxy_http_version 1.1;
`

const nginxConf = nginxHead + `  client_max_body_size 10m;
  upstream recorder { server {{.Recorder}}; keepalive 32; }
  server {
    listen {{.Address}};
    location / {
      proxy_set_header Connection "";
      proxy_set_header X-Seen-Target $request_uri;
      proxy_pass http://recorder;
    }
    location /early/ { return 200 "early\n"; }
{{- range .Zones}}
    location ~ ^/{{.}}(/|$) {
      proxy_set_header Connection "";
      proxy_set_header X-Seen-Target $request_uri;
      proxy_set_header X-Seen-Zone {{.}};
      proxy_pass http://recorder;
    }
{{- end}}
  }
}
`

const apacheConf = `ServerRoot "{{.Folder}}"
ServerName apache.test
Listen {{.Address}}
PidFile {{.Folder}}/httpd.pid
ErrorLog {{.Folder}}/error.log
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule headers_module /usr/lib/apache2/modules/mod_headers.so
LoadModule rewrite_module /usr/lib/apache2/modules/mod_rewrite.so
Timeout 20
# Escaped slashes are taken for slashes: the reading that differs most from the others.
AllowEncodedSlashes On
RewriteEngine On
RewriteRule "^/early/" "-" [R=204,L]
ProxyPreserveHost On
ProxyPass "/" "http://{{.Recorder}}/" nocanon
ProxyPassReverse "/" "http://{{.Recorder}}/"
RequestHeader unset X-Seen-Zone
{{- range .Zones}}
<LocationMatch "^/{{.}}(/|$)">
  RequestHeader set X-Seen-Zone {{.}}
</LocationMatch>
{{- end}}
`

const haproxyDefaults = `defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
frontend in
  bind {{.Address}}
`

const haproxyConf = `global
  expose-experimental-directives
` + haproxyDefaults + `  http-request return status 200 content-type text/plain string "early" if { path -m beg /early/ }
  http-request del-header X-Seen-Zone
  http-request set-header X-Seen-Target "%[pathq]"
{{- range .Zones}}
  http-request set-header X-Seen-Zone {{.}} if { path -m beg /{{.}}/ } or { path,url_dec -m beg /{{.}}/ }
{{- end}}
  http-request normalize-uri percent-decode-unreserved
  http-request normalize-uri path-merge-slashes
  http-request normalize-uri path-strip-dot
  http-request normalize-uri path-strip-dotdot full
{{- range .Zones}}
  http-request set-header X-Seen-Zone {{.}} if { path -m beg /{{.}}/ } or { path,url_dec -m beg /{{.}}/ }
{{- end}}
  default_backend recorder
backend recorder
  http-reuse always
  server recorder {{.Recorder}}
`

const tomcatServer = `<Server port="-1">
  <Service name="Catalina">
    <Connector address="127.0.0.1" port="{{.Port}}" protocol="HTTP/1.1" />
    <Connector address="127.0.0.1" port="{{.Lenient}}" protocol="HTTP/1.1" encodedSolidusHandling="decode" encodedReverseSolidusHandling="decode"
      allowBackslash="true" rejectIllegalHeader="false" relaxedPathChars="&quot;&lt;&gt;[\]^{|}" relaxedQueryChars="&quot;&lt;&gt;[\]^{|}" />
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false" /></Engine>
  </Service>
</Server>
`

const tomcatDefaults = `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
  <servlet><servlet-name>jsp</servlet-name><servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class><load-on-startup>3</load-on-startup></servlet>
  <servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern></servlet-mapping>
</web-app>
`

const tomcatWeb = `<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
{{- range .Zones}}
  <servlet><servlet-name>{{.}}</servlet-name><jsp-file>/WEB-INF/seen.jsp</jsp-file><init-param><param-name>zone</param-name><param-value>{{.}}</param-value></init-param></servlet>
  <servlet-mapping><servlet-name>{{.}}</servlet-name><url-pattern>/{{.}}/*</url-pattern></servlet-mapping>
{{- end}}
  <servlet><servlet-name>early</servlet-name><jsp-file>/WEB-INF/seen.jsp</jsp-file><init-param><param-name>zone</param-name><param-value>early</param-value></init-param></servlet>
  <servlet-mapping><servlet-name>early</servlet-name><url-pattern>/early/*</url-pattern></servlet-mapping>
  <servlet><servlet-name>rest</servlet-name><jsp-file>/WEB-INF/seen.jsp</jsp-file><init-param><param-name>zone</param-name><param-value>open</param-value></init-param></servlet>
  <servlet-mapping><servlet-name>rest</servlet-name><url-pattern>/</url-pattern></servlet-mapping>
</web-app>
`

const tomcatApplication = `<%@ page contentType="text/plain" trimDirectiveWhitespaces="true" import="java.io.*,java.net.*,java.util.regex.*" %><%
String zone = config.getInitParameter("zone");
if (zone.equals("early")) {
  out.print("early\n");
  return;
}
byte[] buffer = new byte[8192];
int length = 0;
for (int n; (n = request.getInputStream().read(buffer)) > 0; length += n) {}
String target = request.getRequestURI() + (request.getQueryString() == null ? "" : "?" + request.getQueryString());
String report = "GET /report HTTP/1.1\r\nHost: recorder\r\nX-Seen-Zone: " + zone + "\r\nX-Seen-Method: " + request.getMethod()
  + "\r\nX-Seen-Length: " + length + "\r\nX-Seen-Target: " + target.replaceAll("[^!-~]", "?") + "\r\n\r\n";
int port = request.getLocalPort() == {{.Lenient}} ? {{.AnotherPort}} : {{.RecorderPort}};
try (Socket socket = new Socket("{{.Host}}", port)) {
  socket.getOutputStream().write(report.getBytes("ISO-8859-1"));
  socket.getInputStream().read(buffer);
}
Matcher id = Pattern.compile("zq\\d{6}[a-hv]").matcher(target);
out.print("seen " + (id.find() ? id.group() : "nothing") + "\n");
%>`

const nodeApplication = `'use strict';
const http = require('http');
const path = require('path');
const zones = [{{range .Zones}}'{{.}}', {{end}}];
const agent = new http.Agent({keepAlive: true, maxSockets: 16});

// readings are what programs make of a target.
function readings(target) {
  const raw = target.split('?')[0];
  const all = [raw];
  try { all.push(new URL(target, 'http://x').pathname); } catch (e) { /* none */ }
  try { all.push(path.posix.normalize(decodeURIComponent(raw))); } catch (e) { /* none */ }
  return all;
}

http.createServer((request, response) => {
  if (request.url.startsWith('/early/')) {
    response.end('early\n');
    return;
  }
  let length = 0;
  request.on('error', () => {});
  request.on('data', (piece) => { length += piece.length; });
  request.on('end', () => {
    const found = zones.find((zone) => readings(request.url).some((p) => p === '/' + zone || p.startsWith('/' + zone + '/')));
    const headers = {'X-Seen-Zone': found || 'open', 'X-Seen-Method': request.method, 'X-Seen-Length': length, 'X-Seen-Target': request.url.replace(/[^!-~]/g, '?')};
    http.get({host: '{{.Host}}', port: {{.RecorderPort}}, path: '/report', agent, headers}, (report) => { report.pipe(response); });
  });
}).listen({{.Port}}, '127.0.0.1');
`

// Host, RecorderPort and AnotherPort are the parts of Recorder and Another.
func (p place) Host() string         { return "127.0.0.1" }
func (p place) RecorderPort() string { return portOf(p.Recorder) }
func (p place) AnotherPort() string  { return portOf(p.Another) }

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

func newPlace(t testing.TB) place {
	t.Helper()
	p := place{Folder: t.TempDir(), Address: freeAddress(t), Zones: zones}
	p.Port, p.Lenient = portOf(p.Address), portOf(freeAddress(t))
	return p
}

// start runs the server until the test ends.
func (s server) start(t testing.TB, p place) {
	t.Helper()
	if err := os.Chmod(p.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range s.files {
		file := filepath.Join(p.Folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(fill(t, text, p)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := ""
	for _, name := range s.programs {
		for _, folder := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
			if found, err := exec.LookPath(filepath.Join(folder, name)); err == nil && program == "" {
				program = found
			}
		}
	}
	if program == "" {
		t.Fatalf("%s is not installed: hack/gateway-attack.sh does it", s.name)
	}
	var arguments []string
	for _, argument := range s.command {
		arguments = append(arguments, fill(t, argument, p))
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), s.environment...)
	startProcess(t, s.name, command)
	waitUntil(t, s.name+" answers", func() bool {
		response, err := http.Get("http://" + p.Address + "/early/")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode < 500
	})
}

func fill(t testing.TB, text string, p place) string {
	t.Helper()
	parsed, err := template.New("").Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	if err := parsed.Execute(out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Every attack, against the gateway's program with the servers behind it.
func TestNothingGetsThroughToRealServers(t *testing.T) {
	lanes := append(recordingLanes(t, loopback), hostileLanes2(t, loopback, authority.New(t, "backends"))...)
	for _, s := range servers {
		p := newPlace(t)
		records, another := newRecorder(t), newRecorder(t)
		p.Recorder, p.Another = records.address(), another.address()
		s.start(t, p)
		lanes = append(lanes, &lane{name: s.name, host: s.name + ".test", address: p.Address, records: records, real: true})
		if s.name == "tomcat" {
			lanes = append(lanes, &lane{name: "tomcat-lenient", host: "tomcat-lenient.test", address: "127.0.0.1:" + p.Lenient, records: another, real: true})
		}
	}
	lanes = append(lanes, startH2C(t))
	s := &suite{target: startGateway(t, lanes), lanes: lanes}
	s.run(append(allAttacks(), backendAnswers()...))
	s.report(t)
	table := s.table()
	t.Logf("\n%s", table)
	if file := os.Getenv("GATEWAY_ATTACK_TABLE"); file != "" {
		appendText(t, file, "Behind the gateway:\n\n"+table)
	}
	for _, l := range lanes {
		if l.real && !strings.Contains(l.name, "lenient") && len(l.requests()) < 100 {
			t.Errorf("%s saw only %d requests: it is not asked as it should be", l.name, len(l.requests()))
		}
	}
}

func appendText(t testing.TB, name, text string) {
	t.Helper()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text + "\n"); err != nil {
		t.Fatal(err)
	}
}
