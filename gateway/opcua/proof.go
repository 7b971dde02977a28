package opcua

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
)

// sign proves to the server that a certificate of ours is our own: it signs the server's
// certificate and nonce (OPC UA Part 4 §5.6.3).
func sign(policyURI string, by *pki.Identity, server, nonce []byte) (*ua.SignatureData, error) {
	if policyURI == ua.SecurityPolicyURINone {
		return &ua.SignatureData{}, nil
	}
	algo, err := asymmetric(policyURI, by.Key, server)
	if err != nil {
		return nil, err
	}
	signature, err := algo.Signature(slices.Concat(server, nonce))
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %w", err)
	}
	return &ua.SignatureData{Algorithm: algo.SignatureURI(), Signature: signature}, nil
}

// proven checks that the server has signed our certificate and nonce (Part 4 §5.6.2).
func (s secured) proven(server, nonce, signature []byte) error {
	algo, err := asymmetric(s.policyURI, s.own.Key, server)
	if err != nil {
		return err
	}
	return algo.VerifySignature(slices.Concat(s.own.Certificate.Raw, nonce), signature)
}

// conceal encrypts a password for the server (Part 4 §7.40.2.2). By which policy says the
// endpoint; where it says nothing, it is the channel's.
func (s secured) conceal(policyURI string, password, server, nonce []byte) (secret []byte, algorithm string, err error) {
	policyURI = cmp.Or(policyURI, s.policy())
	if policyURI == ua.SecurityPolicyURINone {
		return password, "", nil
	}
	algo, err := asymmetric(policyURI, nil, server)
	if err != nil {
		return nil, "", err
	}
	plain := binary.LittleEndian.AppendUint32(nil, uint32(len(password)+len(nonce)))
	secret, err = algo.Encrypt(slices.Concat(plain, password, nonce))
	return secret, algo.EncryptionURI(), err
}
