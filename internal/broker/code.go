package broker

import "fmt"

// Code is a reason code of MQTT 5 (2.4).
type Code byte

// The codes that something follows from.
const (
	Normal             Code = 0x00
	DisconnectWithWill Code = 0x04
	Unspecified        Code = 0x80
	Malformed          Code = 0x81
	Protocol           Code = 0x82
	Version            Code = 0x84
	ClientID           Code = 0x85
	BadLogin           Code = 0x86
	NotAuthorized      Code = 0x87
	Banned             Code = 0x8A
	TakenOver          Code = 0x8E
	TopicInvalid       Code = 0x90
	IdentifierInUse    Code = 0x91
	PacketTooLarge     Code = 0x95
	Quota              Code = 0x97
	PayloadFormat      Code = 0x99
	RetainNotSupported Code = 0x9A
	useAnother         Code = 0x9C
	moved              Code = 0x9D
	noShares           Code = 0x9E
	noWildcards        Code = 0xA2
)

// names are those of the codes that a broker sends for a fault, in the words of
// the standard.
var names = map[Code]string{
	Normal:             "normal disconnection",
	Unspecified:        "unspecified error",
	Malformed:          "malformed packet",
	Protocol:           "protocol error",
	0x83:               "implementation specific error",
	Version:            "unsupported protocol version",
	ClientID:           "client identifier not valid",
	BadLogin:           "bad user name or password",
	NotAuthorized:      "not authorized",
	0x88:               "server unavailable",
	0x89:               "server busy",
	Banned:             "banned",
	0x8B:               "server shutting down",
	0x8C:               "bad authentication method",
	0x8D:               "keep alive timeout",
	TakenOver:          "session taken over",
	0x8F:               "topic filter invalid",
	TopicInvalid:       "topic name invalid",
	IdentifierInUse:    "packet identifier in use",
	0x93:               "receive maximum exceeded",
	0x94:               "topic alias invalid",
	PacketTooLarge:     "packet too large",
	0x96:               "message rate too high",
	Quota:              "quota exceeded",
	0x98:               "administrative action",
	PayloadFormat:      "payload format invalid",
	RetainNotSupported: "retain not supported",
	0x9B:               "QoS not supported",
	useAnother:         "use another server",
	moved:              "server moved",
	noShares:           "shared subscriptions not supported",
	0x9F:               "connection rate exceeded",
	0xA0:               "maximum connect time",
	noWildcards:        "wildcard subscriptions not supported",
}

// String returns the code's name and number.
func (c Code) String() string {
	if n, ok := names[c]; ok {
		return fmt.Sprintf("%s (0x%02X)", n, byte(c))
	}
	return fmt.Sprintf("reason 0x%02X", byte(c))
}

// Failed reports whether the code is that of a failure.
func (c Code) Failed() bool { return c >= Unspecified }

// remedy says what to do about a connection that was refused or ended with c.
func (c Code) remedy() string {
	switch c {
	case Version:
		return "use a broker that speaks MQTT 5 (mosquitto from 1.6)"
	case ClientID:
		return "set a client_id that it accepts"
	case BadLogin:
		return "set login"
	case NotAuthorized:
		return "let the broker allow this user"
	case TakenOver:
		return "another client uses this client id, give each its own"
	case PacketTooLarge:
		return "raise its maximum packet size (mosquitto: max_packet_size)"
	case useAnother, moved:
		return "set url to the broker that is meant; no redirection is followed"
	}
	return ""
}

// Refusal says why a subscription does not stand, with the remedy.
func (c Code) Refusal() string {
	switch c {
	case NotAuthorized:
		return c.String() + "; allow the user to read it"
	case noShares:
		return c.String() + "; take share away, or use a broker that has them"
	case noWildcards:
		return c.String() + "; write the topics out, or let it allow wildcards"
	case Quota:
		return c.String() + "; raise its limit of subscriptions"
	}
	return c.String()
}
