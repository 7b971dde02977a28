package opcua

import (
	"fmt"

	"github.com/gopcua/opcua/ua"
)

func wrongAnswer(req ua.Request, resp ua.Response) error {
	return fmt.Errorf("the server answers a %T with a %T", req, resp)
}
