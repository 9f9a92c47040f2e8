package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// The headers of a signed request.
const (
	HeaderTimestamp = "Slipway-Timestamp"
	HeaderSignature = "Slipway-Signature"
)

const version = "v1="

// Sign returns the signature of a body that is sent at a time.
func Sign(secret []byte, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strconv.FormatInt(at.Unix(), 10)))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return version + hex.EncodeToString(mac.Sum(nil))
}

// Verify reports whether a request is from who has the secret, and at most so old. Timestamp and signature are its headers.
func Verify(secret []byte, timestamp, signature string, body []byte, now time.Time, maxAge time.Duration) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	at := time.Unix(seconds, 0)
	if age := now.Sub(at); age > maxAge || age < -maxAge {
		return false
	}
	return hmac.Equal([]byte(Sign(secret, at, body)), []byte(signature))
}
