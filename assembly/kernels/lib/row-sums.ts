// How sums of a product go into y = add·y + bias + scale · sum, eight outputs of a panel side by side.

let scaling: f32 = 1;
let adding: bool = false;
let biases: usize = 0;
let panelWidth: i32 = 8;

/** @param bias of the first output, or 0 @param width outputs of the panel that there are */
@inline
export function aimSums(scale: f32, add: bool, bias: usize, width: i32): void {
  scaling = scale;
  adding = add;
  biases = bias;
  panelWidth = width;
}

@inline
function put4(y: usize, bias: usize, sum: v128): void {
  let v = f32x4.mul(sum, f32x4.splat(scaling));
  if (bias) v = f32x4.add(v, v128.load(bias));
  if (adding) v = f32x4.add(v, v128.load(y));
  v128.store(y, v);
}

@inline
function put1(y: usize, bias: usize, sum: f32): void {
  let v: f32 = sum * scaling;
  if (bias) v += load<f32>(bias);
  if (adding) v += load<f32>(y);
  store<f32>(y, v);
}

/** Eight sums of one row; fewer where the panel is narrower. @param offset bytes of y and bias to them */
export function put8(y: usize, low: v128, high: v128, offset: usize = 0): void {
  const bias = biases ? biases + offset : 0;
  const width = panelWidth - (<i32>offset >> 2);
  y += offset;
  if (width >= 8) {
    put4(y, bias, low);
    put4(y + 16, bias ? bias + 16 : 0, high);
    return;
  }
  if (width > 0) put1(y, bias, f32x4.extract_lane(low, 0));
  if (width > 1) put1(y + 4, bias ? bias + 4 : 0, f32x4.extract_lane(low, 1));
  if (width > 2) put1(y + 8, bias ? bias + 8 : 0, f32x4.extract_lane(low, 2));
  if (width > 3) put1(y + 12, bias ? bias + 12 : 0, f32x4.extract_lane(low, 3));
  if (width > 4) put1(y + 16, bias ? bias + 16 : 0, f32x4.extract_lane(high, 0));
  if (width > 5) put1(y + 20, bias ? bias + 20 : 0, f32x4.extract_lane(high, 1));
  if (width > 6) put1(y + 24, bias ? bias + 24 : 0, f32x4.extract_lane(high, 2));
}
