package diameter

import (
	"context"
	"time"

	"bsfd/internal/settings"
)

// Settings are the settings of the gateway that operators change while it runs,
// resources of the configuration API as in package overload.
type Settings struct {
	Repaving RepavingSettings `json:"diameterRepaving" path:"oc:diameterRepaving/config" seed:"3.45"`
}

// RepavingSettings are Repaving with times in milliseconds.
type RepavingSettings struct {
	Enabled            bool `json:"enabled" usage:"disconnect peers when it is triggered"`
	MaxStaggerJitter   int  `json:"maxStaggerJitter" range:"0..3600000" usage:"longest random wait of an instance before it begins, in milliseconds"`
	ReinvocationDelay  int  `json:"reinvocationDelayMin" range:"0..3600000" usage:"shortest time between the end of one and the start of the next, in milliseconds"`
	DisconnectInterval int  `json:"connectionDisconnectInterval" range:"0..3600000" usage:"wait between two disconnections, in milliseconds"`
	DPRDelay           int  `json:"dprDelay" range:"0..3600000" usage:"wait for outstanding answers of a peer before its DPR, in milliseconds"`
	DPRDisconnectCause int  `json:"dprDisconnectCause" range:"0..2" usage:"Disconnect-Cause: 0 REBOOTING, 1 BUSY or 2 DO_NOT_WANT_TO_TALK_TO_YOU"`
}

// Settings are the defaults of what changes while the gateway runs.
func (c *Config) Settings() Settings {
	r, ms := c.Repaving, func(d time.Duration) int { return int(d.Milliseconds()) }
	return Settings{RepavingSettings{
		r.Enabled, ms(r.MaxStaggerJitter), ms(r.ReinvocationDelay), ms(r.DisconnectInterval), ms(r.DPRDelay), int(r.DisconnectCause),
	}}
}

func (r RepavingSettings) repaving() Repaving {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return Repaving{
		Enabled: r.Enabled, MaxStaggerJitter: ms(r.MaxStaggerJitter), ReinvocationDelay: ms(r.ReinvocationDelay),
		DisconnectInterval: ms(r.DisconnectInterval), DPRDelay: ms(r.DPRDelay), DisconnectCause: uint32(r.DPRDisconnectCause),
	}
}

// Settings are the settings as they are now, and the way to change them. There
// are none before Listen.
func (g *Gateway) Settings() *settings.Store[Settings] { return g.settings }

// openSettings takes up the settings that are in storage.
func (g *Gateway) openSettings(ctx context.Context) (err error) {
	g.settings, err = settings.Open(ctx, "diameter", g.deps.Documents, g.cfg.Settings(), g.reconfigure, g.log)
	return err
}

// reconfigure takes settings over, whole or not at all.
func (g *Gateway) reconfigure(s Settings) error {
	if err := settings.Check(&s); err != nil {
		return err
	}
	g.repaver.setConfig(s.Repaving.repaving())
	return nil
}
