package dialguard

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestCheck(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "::127.0.0.1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true,
		"::ffff:0.0.0.0": true, "64:ff9b::7f00:1": true, "64:ff9b:1::a9fe:a9fe": true, "2002:7f00:1::": true, "::ffff:0:127.0.0.1": true,
		"169.254.169.254": true, "169.254.1.1": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "fe80::1": true, "fe80::1%eth0": true,
		"224.0.0.1": true, "239.1.1.1": true, "255.255.255.255": true, "ff02::1": true, "ff05::1": true, "ff01::1%lo": true,
		"fd00:ec2::254": true, "fd20:ce::254": true, "100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "64:ff9b::6464:64c8": true,
		"64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b:1:0:a9:fea9:fe00:0": true, "64:ff9b:1::101:101": true,
		// Pods and Services of a cluster, and the Internet.
		"10.96.0.1": false, "172.20.1.2": false, "192.168.7.7": false, "100.64.0.1": false, "fd00:10:96::1": false, "1.1.1.1": false, "2606:4700::1111": false,
		"64:ff9b::101:101": false,
	} {
		err := (*Guard)(nil).Check(netip.AddrPortFrom(netip.MustParseAddr(address), 80))
		if refused != errors.Is(err, ErrRefused) || refused != (err != nil) {
			t.Errorf("%s: %v, want refused: %v", address, err, refused)
		}
	}
}

func TestTheOwnPodIsRefused(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range own {
		address, _ := netip.AddrFromSlice(one.(*net.IPNet).IP)
		admin := netip.AddrPortFrom(address, 8081)
		backends := &Guard{Own: func(port uint16) bool { return port != admin.Port() }}
		for _, g := range []*Guard{nil, new(Guard), backends} {
			if err := g.Check(admin); !errors.Is(err, ErrRefused) {
				t.Errorf("%s: %v", admin, err)
			}
		}
		if address = address.Unmap(); address.IsLoopback() || address.IsLinkLocalUnicast() {
			continue
		}
		if err := backends.Check(netip.AddrPortFrom(address, 8080)); err != nil {
			t.Errorf("%s as a backend: %v", address, err)
		}
	}
}

func TestExceptions(t *testing.T) {
	g := &Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for address, refused := range map[string]bool{"127.0.0.1": false, "::ffff:127.0.0.1": false, "::1": true, "169.254.169.254": true, "64:ff9b::7f00:1": false} {
		if err := g.Check(netip.AddrPortFrom(netip.MustParseAddr(address), 80)); refused != (err != nil) {
			t.Errorf("%s: %v, want refused: %v", address, err, refused)
		}
	}
}

// Names are resolved first, and a redirect is dialed like everything else.
func TestWhatIsDialedCounts(t *testing.T) {
	asked := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	redirect := httptest.NewServer(http.RedirectHandler("http://127.0.0.2:"+port, http.StatusFound))
	defer redirect.Close()
	client := func(g *Guard) *http.Client {
		return &http.Client{Transport: &http.Transport{DialContext: g.DialContext, Proxy: g.Proxy}}
	}
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]"} {
		response, err := client(nil).Get("http://" + host + ":" + port + "/revision?standby=true")
		if err == nil {
			response.Body.Close()
		}
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", host, err)
		}
	}
	response, err := client(&Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}).Get(redirect.URL)
	if err == nil {
		response.Body.Close()
	}
	if !errors.Is(err, ErrRefused) || asked {
		t.Errorf("a redirect: %v, asked: %v", err, asked)
	}
}

func TestAnAddressIsRefusedBeforeAProxyIsAsked(t *testing.T) {
	for host, refused := range map[string]bool{"169.254.169.254": true, "fd00:ec2::254": true, "id.example.com": false, "10.1.2.3": false} {
		if err := (*Guard)(nil).checkHost(host); refused != (err != nil) {
			t.Errorf("%s: %v, want refused: %v", host, err, refused)
		}
	}
}
