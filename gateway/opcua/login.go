package opcua

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
)

// credentials are what we log in with. The zero value is anonymous.
type credentials struct {
	user     string
	password []byte
	cert     *pki.Identity // of the user, not of the application
}

func (c *credentials) kind() ua.UserTokenType {
	switch {
	case c.cert != nil:
		return ua.UserTokenTypeCertificate
	case c.user != "":
		return ua.UserTokenTypeUserName
	}
	return ua.UserTokenTypeAnonymous
}

var tokenNames = map[ua.UserTokenType]string{
	ua.UserTokenTypeAnonymous: "anonymous", ua.UserTokenTypeUserName: "a user name", ua.UserTokenTypeCertificate: "a user's certificate",
	ua.UserTokenTypeIssuedToken: "an issued token",
}

// policyRank orders the policies that protect a password or sign for a
// certificate; those that are not in it are not used.
var policyRank = []string{
	ua.SecurityPolicyURINone, ua.SecurityPolicyURIBasic256Sha256,
	ua.SecurityPolicyURIAes128Sha256RsaOaep, ua.SecurityPolicyURIAes256Sha256RsaPss,
}

// tokenPolicy chooses how to log in at an endpoint: of the policies for our kind
// of credentials, the one that protects them best.
func tokenPolicy(e *ua.EndpointDescription, kind ua.UserTokenType) (*ua.UserTokenPolicy, error) {
	var best *ua.UserTokenPolicy
	rank := -1
	var offered []string
	for _, p := range e.UserIdentityTokens {
		offered = append(offered, tokenNames[p.TokenType])
		if p.TokenType != kind {
			continue
		}
		uri := p.SecurityPolicyURI
		if uri == "" {
			uri = e.SecurityPolicyURI
		}
		if r := slices.Index(policyRank, uri); r > rank {
			best, rank = p, r
		}
	}
	if best == nil {
		slices.Sort(offered)
		return nil, fmt.Errorf("the server does not accept %s here, but %q: change login", tokenNames[kind], slices.Compact(offered))
	}
	return best, nil
}

// exposed reports whether a password would cross the network readable.
func exposed(e *ua.EndpointDescription, p *ua.UserTokenPolicy) bool {
	uri := p.SecurityPolicyURI
	if uri == "" {
		uri = e.SecurityPolicyURI
	}
	return p.TokenType == ua.UserTokenTypeUserName && uri == ua.SecurityPolicyURINone && e.SecurityMode != ua.MessageSecurityModeSignAndEncrypt
}

// token returns what proves our identity to the session with that certificate
// and nonce of the server.
func (c *credentials) token(by secured, p *ua.UserTokenPolicy, server, nonce []byte) (token any, sig *ua.SignatureData, err error) {
	sig = &ua.SignatureData{}
	switch p.TokenType {
	case ua.UserTokenTypeUserName:
		secret, algorithm, err := by.conceal(p.SecurityPolicyURI, c.password, server, nonce)
		if err != nil {
			return nil, nil, fmt.Errorf("the password cannot be encrypted: %w", err)
		}
		return &ua.UserNameIdentityToken{PolicyID: p.PolicyID, UserName: c.user, Password: secret, EncryptionAlgorithm: algorithm}, sig, nil
	case ua.UserTokenTypeCertificate:
		if sig, err = sign(cmp.Or(p.SecurityPolicyURI, by.policy()), c.cert, server, nonce); err != nil {
			return nil, nil, fmt.Errorf("the user's certificate cannot sign: %w", err)
		}
		return &ua.X509IdentityToken{PolicyID: p.PolicyID, CertificateData: c.cert.Certificate.Raw}, sig, nil
	case ua.UserTokenTypeAnonymous:
		return &ua.AnonymousIdentityToken{PolicyID: p.PolicyID}, sig, nil
	}
	return nil, nil, errors.New("a kind of login that is not known")
}
