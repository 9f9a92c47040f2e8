//go:build attack

package gatewayattack

import (
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// Proxies in front of the gateway share connections to it among their clients: what the gateway and the proxy read
// differently is another client's request.
var fronts = []server{nginx(nginxFront), haproxy(haproxyFront)}

const nginxFront = nginxHead + `  proxy_request_buffering off;
  upstream gateway { server {{.Gateway}}; keepalive 8; }
  server {
    listen {{.Address}};
    location / {
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_pass http://gateway;
    }
  }
}
`

// A connection may end at the moment in which it is used again: then HAProxy has to try another one, as nginx does by itself.
const haproxyFront = `global
  maxconn 1000
` + haproxyDefaults + `  default_backend gateway
backend gateway
  http-reuse always
  retry-on conn-failure empty-response
  http-request disable-l7-retry unless METH_GET
  server gateway {{.Gateway}}
`

// tap records what a proxy sends to the gateway, and passes it on.
func tap(t *testing.T, gateway string) *recorder {
	t.Helper()
	return record(t, loopback, func(r *recorder, one *recorded) {
		to, err := net.Dial("tcp", gateway)
		if err != nil {
			return
		}
		defer to.Close()
		go func() {
			_, _ = io.Copy(one.conn, to)
			_ = one.conn.Close()
		}()
		for {
			piece, err := r.read(one, nil)
			if _, failed := to.Write(piece); failed != nil || err != nil {
				return
			}
		}
	})
}

// Every attack of HTTP/1, through a proxy in front of the gateway whose connections are shared with others.
func TestOthersBehindTheSameProxyAreServed(t *testing.T) {
	for _, front := range fronts {
		t.Run(front.name, func(t *testing.T) {
			lanes := append(recordingLanes(t, loopback), hostileLanes2(t, loopback, authority.New(t, "backends"))...)
			gateway := startGateway(t, lanes)
			between := tap(t, gateway.plain)
			p := newPlace(t)
			p.Gateway = between.address()
			front.start(t, p)
			s := &suite{target: &target{name: front.name, plain: p.Address, patience: patient}, lanes: lanes, between: between}
			s.run(slices.DeleteFunc(append(allAttacks(), backendAnswers()...), func(a *attack) bool { return a.secure != "" || len(a.h2) > 0 || a.family == "paths" }))
			for _, p := range s.played {
				if found := s.judge.found[p]; len(found) > 0 {
					t.Errorf("%s: %s\n%s%v", p.family, p.name, p.sent(), found)
				}
			}
			if file := os.Getenv("GATEWAY_ATTACK_TABLE"); file != "" {
				appendText(t, file, "With "+front.name+" in front of the gateway:\n\n"+s.table())
			}
		})
	}
}

// nginxOne shares one connection to the gateway among all of its clients.
var nginxOne = nginx(strings.Replace(nginxFront, "keepalive 8", "keepalive 1", 1))

// The backend of one tenant does not answer the client of another, who comes through the same proxy right afterwards.
func TestATenantAnswersNobodyElsesClients(t *testing.T) {
	for _, front := range []server{nginxOne, haproxy(haproxyFront)} {
		t.Run(front.name, func(t *testing.T) {
			lanes := append(recordingLanes(t, loopback), hostileLanes2(t, loopback, authority.New(t, "backends"))...)
			gateway := startGateway(t, lanes)
			p := newPlace(t)
			p.Gateway = strings.TrimPrefix(gateway.plain, "http://")
			front.start(t, p)
			proxy := &target{name: front.name, plain: p.Address, patience: patience{answer: 3 * time.Second, quiet: 100 * time.Millisecond}}
			for _, l := range lanes {
				if l.over == "" {
					continue
				}
				for _, a := range attacks2("", []scripted{theAnswerOfAnother}) {
					if len(a.h1) == 0 {
						continue
					}
					a.sends, a.h1[0].send = "a", strings.TrimSuffix(a.h1[0].send, afterwards)
					played := a.against(l)
					played.play(proxy)
					if trouble := proxy.victim(lanes[0], played.number); trouble != "" {
						t.Errorf("%s: the client of %s %s", l.name, lanes[0].name, trouble)
					}
				}
			}
		})
	}
}
