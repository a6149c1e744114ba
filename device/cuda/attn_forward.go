package cuda

// attend launches the forward pass.
func (d *forwardAttention) attend(c *attnCall) {
	c.mustFit()
	if c.B*c.T == 0 {
		return
	}
	if s, k, ok := c.hopper(d.machine); ok {
		d.forwardHopper(c, s, &k)
		return
	}
	s, k, ok := c.tiled()
	if !ok {
		d.attendGeneral(c)
		return
	}
	d.forwardTiled(c, s.forward(), k.forward)
}

// forwardTiled launches the kernel of the call's shape.
func (d *forwardAttention) forwardTiled(c *attnCall, t forwardTile, k kernel) {
	rows, threads, shared := t.sizes(attnShape{c.maps, c.keys, c.D, c.DV})
	d.launch(k, dim3(ceil(c.T, rows), c.Heads, c.B), dim1(threads), shared,
		ptr(c.q), ptr(c.k), ptr(c.v), ptr(c.start), ptr(c.lam), c.weightPtr(), ptr(c.out), ptr(c.raw), ptr(c.out2),
		ptr(c.lse), ptr(c.rstd),
		i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(c.out.Ld), i32(c.raw.Ld), i32(c.out2.Ld), i32(c.lse.Ld),
		i32(c.rstd.Ld), i32(c.lam.Ld),
		i32(c.T), i32(c.Heads), i32(c.Groups), f32(c.Scale), f32(c.norm.Eps), f32(c.norm.Scale), flag(c.eachLam),
		flag(c.norm.On))
}

// attendGeneral is attend for any shape.
func (d *forwardAttention) attendGeneral(c *attnCall) {
	n := c.B * c.T
	d.launch(attnGeneral[c.maps].forward, dim1(ceil(n*c.Heads, generalWarps)), dim1(32*generalWarps), 0,
		ptr(c.q), ptr(c.k), ptr(c.v), ptr(c.start), ptr(c.lam), c.weightPtr(), ptr(c.out), ptr(c.raw), ptr(c.out2),
		ptr(c.lse), ptr(c.rstd),
		i32(c.q.Ld), i32(c.k.Ld), i32(c.v.Ld), i32(c.out.Ld), i32(c.raw.Ld), i32(c.out2.Ld), i32(c.lse.Ld),
		i32(c.rstd.Ld), i32(c.lam.Ld),
		i32(n), i32(c.T), i32(c.Heads), i32(c.Groups), i32(c.D), i32(c.DV), i32(c.keys),
		f32(c.Scale), f32(c.norm.Eps), f32(c.norm.Scale), flag(c.eachLam), flag(c.norm.On))
}
