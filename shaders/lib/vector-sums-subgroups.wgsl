// The same (vector-sums.wgsl) where the device has subgroups, of whatever size and order of lanes: each adds up its own, one of
// its lanes writes that, and all are added up in the same way.

var<workgroup> sums: array<vec4<f32>, 64>;
var<workgroup> others: array<vec4<f32>, 64>;
var<workgroup> squares: array<vec4<f32>, 64>;

fn sum_up(lane: u32, a: vec4<f32>, b: vec4<f32>, square: vec4<f32>) {
  let rank = subgroupExclusiveAdd(1u);
  let size = subgroupAdd(1u);
  let writes = rank == 0u;
  sums[lane] = select(vec4<f32>(), subgroupAdd(a), writes);
  others[lane] = select(vec4<f32>(), subgroupAdd(b), writes);
  squares[lane] = select(vec4<f32>(), subgroupAdd(square), writes);
  workgroupBarrier();
  var all = array<vec4<f32>, 3>();
  for (var i = rank; i < 64u; i += size) {
    all[0] += sums[i];
    all[1] += others[i];
    all[2] += squares[i];
  }
  let whole = array<vec4<f32>, 3>(subgroupAdd(all[0]), subgroupAdd(all[1]), subgroupAdd(all[2]));
  workgroupBarrier();
  if (lane == 0u) {
    sums[0] = whole[0];
    others[0] = whole[1];
    squares[0] = whole[2];
  }
  workgroupBarrier();
}
