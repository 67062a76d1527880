// Proof of execution, group numbering and exact arithmetic; part of every kernel.
// `params.stamp` = (nonce, slot, 0, groups per grid row). A kernel calls `stamp(n)` once per workgroup, from one
// invocation, with the number of elements that the group really handled; the host accepts a readback only when the
// nonce is there and the counts add up.

@group(0) @binding(9) var<storage, read_write> stamps: array<atomic<u32>>;

fn stamp(done: u32) {
  atomicStore(&stamps[params.stamp.y * 2u], params.stamp.x);
  atomicAdd(&stamps[params.stamp.y * 2u + 1u], done);
}

fn group_index(group: vec3<u32>) -> u32 {
  return group.y * params.stamp.w + group.x;
}

// Arithmetic has no subnormals: magnitudes up to 2^-126 count as zero of their sign, whatever the device does.
fn flush(bits: u32) -> u32 {
  return select(bits & 0x80000000u, bits, (bits & 0x7fffffffu) > 0x00800000u);
}

// Ends a rounding step. WGSL compilers may fuse a product with the sum that follows; the exclusive-or with a zero that
// they cannot see keeps product and sum two roundings, so that GPU and CPU agree to the bit.
fn exact(x: f32) -> f32 {
  return bitcast<f32>(flush(bitcast<u32>(x) ^ params.stamp.z));
}
