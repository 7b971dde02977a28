package opcua

import (
	"fmt"
	"strings"

	"github.com/gopcua/opcua/ua"
)

// policies are the security policies that are used. The older ones (Basic128Rsa15,
// Basic256) rest on SHA-1 and are deprecated by OPC UA Part 7; they are refused.
var policies = map[string]string{
	"Basic256Sha256":        ua.SecurityPolicyURIBasic256Sha256,
	"Aes128_Sha256_RsaOaep": ua.SecurityPolicyURIAes128Sha256RsaOaep,
	"Aes256_Sha256_RsaPss":  ua.SecurityPolicyURIAes256Sha256RsaPss,
}

var modes = map[string]ua.MessageSecurityMode{
	"Sign": ua.MessageSecurityModeSign, "SignAndEncrypt": ua.MessageSecurityModeSignAndEncrypt,
}

// parseSecurity reads none, or a policy and a mode.
func parseSecurity(s string) (policyURI string, mode ua.MessageSecurityMode, err error) {
	if s == "none" {
		return ua.SecurityPolicyURINone, ua.MessageSecurityModeNone, nil
	}
	policy, m, _ := strings.Cut(s, "/")
	policyURI, mode = policies[policy], modes[m]
	if policyURI == "" || mode == 0 {
		return "", 0, fmt.Errorf("security: %q is not known; write Basic256Sha256, Aes128_Sha256_RsaOaep or Aes256_Sha256_RsaPss with /Sign or /SignAndEncrypt, or none", s)
	}
	return policyURI, mode, nil
}
