// Package notify tells people about alarms: it makes messages of them, and brings those for webhooks to where they belong.
//
// A message is a CloudEvent 1.0 as JSON (structured mode). Its id is the key of the alarm: who gets the same id twice has got the
// same alarm twice. It is sent at least once, and tried again after 1 s, 2 s, 4 s and so on up to 10 min, for a day at least.
//
// # Signature
//
// A webhook with a secret gets two headers. Slipway-Timestamp is the time in seconds since 1970, and Slipway-Signature is "v1="
// and the HMAC-SHA256 of the timestamp, a dot and the body, in hexadecimal digits. Verify does what a receiver has to do. In a
// shell:
//
//	printf '%s.%s' "$timestamp" "$body" | openssl dgst -sha256 -hmac "$secret"
//
// # Files
//
//	message.go  the messages of an alarm
//	sign.go     Sign and Verify
//	webhook.go  one webhook: its configuration, and one request
//	sender.go   Sender, which empties the outbox
//	notes.go    what came of messages, while the outbox does not take it
package notify
