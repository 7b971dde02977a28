package opcua

import (
	"bytes"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/gopcua/opcua/uapolicy"
)

// seal protects chunks (OPC UA Part 6 §6.7.2). The zero value leaves them as they are.
type seal struct {
	algo    *uapolicy.EncryptionAlgorithm // nil: neither signed nor encrypted
	encrypt bool
}

// paddingCount is how many bytes count the padding for a key of some bytes (Part 6
// §6.7.2.5).
func paddingCount(key int) int {
	if key > 256 {
		return 2
	}
	return 1
}

// room is how many bytes of a message fit into a chunk of size bytes behind a head.
func (s seal) room(size, head int) int {
	size -= head
	if s.algo == nil {
		return size - sequenceHead
	}
	if s.encrypt {
		size = size/s.algo.BlockSize()*s.algo.PlaintextBlockSize() - paddingCount(s.algo.RemoteSignatureLength())
	}
	return size - sequenceHead - s.algo.SignatureLength()
}

// pad fills up what is to be signed and encrypted to whole blocks.
func (s seal) pad(plain []byte) []byte {
	count, block := paddingCount(s.algo.RemoteSignatureLength()), s.algo.PlaintextBlockSize()
	fill := (block - (len(plain)+count+s.algo.SignatureLength())%block) % block
	plain = append(plain, bytes.Repeat([]byte{byte(fill)}, fill+1)...)
	if count == 2 {
		plain = append(plain, byte(fill>>8))
	}
	return plain
}

// close returns a chunk of a head, whose size it fills in, and what is to be protected.
func (s seal) close(head, plain []byte) ([]byte, error) {
	if s.algo == nil {
		binary.LittleEndian.PutUint32(head[4:], uint32(len(head)+len(plain)))
		return append(head, plain...), nil
	}
	size := len(head) + len(plain) + s.algo.SignatureLength()
	if s.encrypt {
		plain = s.pad(plain)
		size = len(head) + (len(plain)+s.algo.SignatureLength())/s.algo.PlaintextBlockSize()*s.algo.BlockSize()
	}
	binary.LittleEndian.PutUint32(head[4:], uint32(size))
	b := append(slices.Clip(head), plain...)
	signature, err := s.algo.Signature(b)
	if err != nil {
		return nil, fmt.Errorf("cannot sign: %w", err)
	}
	b = append(b, signature...)
	if !s.encrypt {
		return b, nil
	}
	secret, err := s.algo.Encrypt(b[len(head):])
	if err != nil {
		return nil, fmt.Errorf("cannot encrypt: %w", err)
	}
	return append(b[:len(head)], secret...), nil
}

var errSeal = errors.New("what came is not from the server that the channel was opened with, or was changed on its way")

// open returns what a chunk protects behind the first head bytes.
func (s seal) open(b []byte, head int) ([]byte, error) {
	if s.algo == nil {
		return b[head:], nil
	}
	if s.encrypt {
		plain, err := s.algo.Decrypt(b[head:])
		if err != nil {
			return nil, errSeal
		}
		b = append(b[:head:head], plain...)
	}
	end := len(b) - s.algo.RemoteSignatureLength()
	if end < head || s.algo.VerifySignature(b[:end], b[end:]) != nil {
		return nil, errSeal
	}
	if b = b[head:end]; !s.encrypt {
		return b, nil
	}
	count := paddingCount(s.algo.SignatureLength())
	if len(b) < count {
		return nil, errSeal
	}
	fill := int(b[len(b)-1])
	if count == 2 {
		fill = fill<<8 | int(b[len(b)-2])
	}
	if len(b) < count+fill {
		return nil, errSeal
	}
	return b[:len(b)-count-fill], nil
}

// asymmetric is how the keys of two certificates protect, under a policy.
func asymmetric(policyURI string, own *rsa.PrivateKey, server []byte) (*uapolicy.EncryptionAlgorithm, error) {
	certificate, err := uapolicy.ParseCertificate(leaf(server))
	if err != nil {
		return nil, fmt.Errorf("the server's certificate cannot be read: %w", err)
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the server's certificate has no RSA key")
	}
	return uapolicy.Asymmetric(policyURI, own, key)
}
