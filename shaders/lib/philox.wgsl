// Philox4x32-10 (Salmon et al. 2011): four random words from a 128-bit counter and a 64-bit key.

fn mul_high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu; let ah = a >> 16u;
  let bl = b & 0xffffu; let bh = b >> 16u;
  let low = al * bl;
  let mid = ah * bl + (low >> 16u);
  let mid2 = al * bh + (mid & 0xffffu);
  return ah * bh + (mid >> 16u) + (mid2 >> 16u);
}

fn philox(counter: vec4<u32>, key: vec2<u32>) -> vec4<u32> {
  var c = counter;
  var k = key;
  for (var round = 0u; round < 10u; round++) {
    c = vec4<u32>(
      mul_high(0xCD9E8D57u, c.z) ^ c.y ^ k.x,
      0xCD9E8D57u * c.z,
      mul_high(0xD2511F53u, c.x) ^ c.w ^ k.y,
      0xD2511F53u * c.x,
    );
    k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
