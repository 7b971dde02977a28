package opcua

import (
	"errors"
	"fmt"

	"github.com/gopcua/opcua/ua"
)

// The library bounds arrays so that one whose length is a lie costs no memory; scan does
// so by what really came, and whole arrays are for flattener to judge.
func init() { ua.MaxVariantArrayLength = messageMost }

func encode(req ua.Request) ([]byte, error) {
	b, err := ua.NewFourByteExpandedNodeID(0, ua.ServiceTypeID(req)).Encode()
	if err != nil {
		return nil, err
	}
	body, err := ua.Encode(req)
	return append(b, body...), err
}

// decode reads an answer. The library's codec trusts what it reads: it panics at a
// negative length, recurses as deep as it is told to, and makes room for whatever is
// announced (gopcua v0.9.1, ua/variant.go). So an answer is scanned first. An error is
// never one that wraps a status, which would be the server's.
func decode(b []byte) (resp ua.Response, err error) {
	defer func() { // what scan has not foreseen costs this answer, and not the gateway
		if p := recover(); p != nil {
			resp, err = nil, fmt.Errorf("the answer cannot be decoded: %v", p)
		}
	}()
	return decodeScanned(b)
}

func decodeScanned(b []byte) (ua.Response, error) {
	if err := scanMessage(b); err != nil {
		return nil, fmt.Errorf("the answer cannot be decoded: %w", err)
	}
	_, v, err := ua.DecodeService(b)
	if err != nil {
		return nil, fmt.Errorf("the answer cannot be decoded: %v", err)
	}
	resp, ok := v.(ua.Response)
	if !ok {
		return nil, errors.New("the server sends a request where an answer was due")
	}
	return resp, nil
}
