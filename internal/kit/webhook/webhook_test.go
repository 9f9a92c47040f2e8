package webhook

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const host = "slipway-webhook.slipway-system.svc"

// verify does what the API server does with the certificate in use.
func verify(t *testing.T, certificates *Certificates, trusted []byte, now time.Time) error {
	t.Helper()
	used, err := certificates.Get(nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(used.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	return err
}

// Four months with two operators, of which one restarts every week: whoever is asked is
// trusted at every moment.
func TestACertificateIsTrustedBeforeItIsUsed(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	lasting, err := NewCertificates(host, now)
	if err != nil {
		t.Fatal(err)
	}
	var trusted []byte
	used := map[string]bool{}
	for day := range 120 {
		restarting := lasting
		if day%7 == 0 {
			if restarting, err = NewCertificates(host, now); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			for _, certificates := range []*Certificates{lasting, restarting} {
				more, again, err := certificates.renew(func(pem []byte) bool { return bytes.Contains(trusted, pem) })
				if err != nil || again <= 0 {
					t.Fatalf("day %d: again after %v, %v", day, again, err)
				}
				// What is trusted and heard of by now, before the bundle is changed, is enough for
				// an operator that has been running.
				if certificates == lasting && trusted != nil {
					if err := verify(t, certificates, trusted, now.Now()); err != nil {
						t.Fatalf("day %d: %v", day, err)
					}
				}
				trusted = bundle(trusted, more, now.Now())
				if err := verify(t, certificates, trusted, now.Now()); err != nil {
					t.Fatalf("day %d: %v", day, err)
				}
			}
			now.SetTime(now.Now().Add(trustedFor))
		}
		if count := bytes.Count(trusted, []byte("BEGIN")); count > maxTrusted {
			t.Fatalf("day %d: %d certificates are trusted", day, count)
		}
		certificate, _ := lasting.Get(nil)
		used[string(certificate.Certificate[0])] = true
		now.SetTime(now.Now().Add(24 * time.Hour))
	}
	if len(used) < 120/30 {
		t.Errorf("only %d certificates in four months", len(used))
	}
}

// nobody trusts a certificate.
func nobody([]byte) bool { return false }

// The API server may refuse to trust the next one for a while.
func TestACertificateThatIsNotTrustedIsNotUsed(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	certificates, err := NewCertificates(host, now)
	if err != nil {
		t.Fatal(err)
	}
	trusted, again, err := certificates.renew(nobody)
	if err != nil {
		t.Fatal(err)
	}
	first := bundle(nil, trusted, now.Now())
	now.SetTime(now.Now().Add(again))
	for range 5 {
		if trusted, again, err = certificates.renew(nobody); err != nil || again <= 0 {
			t.Fatalf("again after %v, %v", again, err)
		}
		if err := verify(t, certificates, first, now.Now()); err != nil {
			t.Fatalf("the next one is used before it is trusted: %v", err)
		}
		now.SetTime(now.Now().Add(trustedFor))
	}
	both := bundle(first, trusted, now.Now())
	for range 2 {
		if _, again, err = certificates.renew(func(pem []byte) bool { return bytes.Contains(both, pem) }); err != nil {
			t.Fatal(err)
		}
		now.SetTime(now.Now().Add(trustedFor))
	}
	if err := verify(t, certificates, both, now.Now()); err != nil {
		t.Error(err)
	}
	if err := verify(t, certificates, first, now.Now()); err == nil || again < 10*24*time.Hour {
		t.Errorf("the next one is not used though it has been trusted long enough, looks again after %v", again)
	}
}

func TestABundleThatLacksNothingStaysAsItIs(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	certificates, err := NewCertificates(host, now)
	if err != nil {
		t.Fatal(err)
	}
	trusted, _, err := certificates.renew(nobody)
	if err != nil {
		t.Fatal(err)
	}
	first := bundle([]byte("not a certificate"), trusted, now.Now())
	if second := bundle(first, trusted, now.Now()); !bytes.Equal(first, second) {
		t.Errorf("the bundle was changed from\n%s\nto\n%s", first, second)
	}
	if ended := bundle(first, nil, now.Now().Add(2*lifetime)); len(ended) > 0 {
		t.Errorf("what has ended is still trusted:\n%s", ended)
	}
}
