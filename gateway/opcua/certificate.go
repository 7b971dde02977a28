package opcua

import (
	"crypto/sha1"
	"crypto/x509"
)

// leaf returns the first certificate of a chain in DER, which is the peer's own;
// what cannot be read stays as it is and will be trusted by nobody.
func leaf(der []byte) []byte {
	certs, err := x509.ParseCertificates(der)
	if err != nil || len(certs) == 0 {
		return der
	}
	return certs[0].Raw
}

// thumbprint is how the protocol names a certificate (OPC UA Part 6 §6.7.2); no
// security rests on it.
func thumbprint(der []byte) []byte {
	sum := sha1.Sum(leaf(der))
	return sum[:]
}
