package uplink

import (
	"context"

	"tidemark/internal/broker"
)

// Knock connects to the broker as an uplink with that configuration would, sends
// nothing, leaves no will, and says goodbye. Its error is a sentence that names the
// remedy.
func Knock(ctx context.Context, cfg Config) error {
	cfg.setDefaults()
	b, err := newClient(&cfg)
	if err != nil {
		return err
	}
	c, err := b.connect(ctx, nil, func(uint16, broker.Code) {})
	if err != nil {
		return err
	}
	c.disconnect(broker.Normal)
	c.abort()
	return nil
}
