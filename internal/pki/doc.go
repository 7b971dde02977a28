// Package pki keeps an OPC UA application's certificate and decides which servers'
// certificates to believe (OPC UA Part 12 §7.5, Part 4 §6.1.3).
//
// A Store is a directory, and nothing but that: a certificate that is moved from
// rejected to trusted, by tidemark pki or by hand, counts at the next look, in
// this process and in others. Trust is in exactly that certificate, or in a
// certificate authority and whatever it has issued and not revoked. Nothing is
// trusted by itself; what was refused is set aside, to be looked at.
//
// The layout is the one that OPC UA tools use:
//
//	own/certificate.der, own/key.pem     the application's own; put others there to use them
//	trusted/certs, trusted/crl           servers and authorities, and what those have revoked
//	issuers/certs, issuers/crl           authorities on the way that are not trusted by themselves
//	rejected/certs                       servers that were refused, at most 50
package pki
