/** What the kernels that go through rows, and attention, are given: on the processor against their formulas, on WebGPU against the processor. */
import {
  ACTIVATION_CODE,
  activate,
  capLogits,
  LOG_SUM_SEGMENT,
  logSum,
  NORM_CODE,
  normLine,
} from './activation';
import { attention, CHUNKED, NO_WINDOW, OWN_CODE, placeHeads, placeProjected } from './attention';
import { type Contents, floats } from './forward-kernels.test.fixture';
import { addScaled } from './sums';

export interface KernelCase {
  title: string;
  kernel: object;
  contents: () => Contents;
  params: Record<string, number>;
  /** Buffers that are compared. */
  outputs: readonly string[];
}

const angles = (half: number) => floats(6 * 2 * Math.max(half, 1), 11);

const PLACED_HEADS = [
  [0, 0],
  [3, 0],
  [4, 0],
  [6, 0],
  [3, 1],
  [4, 1],
  [6, 1],
].flatMap(([half = 0, adjacent = 0]) =>
  [0, 1].map((keep_rows): KernelCase => {
    // narrower than a head where few pairs rotate
    const [rows, heads, head_dim] = [6, 3, half === 6 ? 12 : 8];
    return {
      title: `place-heads, ${half} pairs rotate, neighbors ${adjacent}, rows kept ${keep_rows}`,
      kernel: placeHeads,
      contents: () => ({
        x: floats(rows * 100, 10),
        places: Uint32Array.from([4, 0, 5, 1, 6, 2, 0, 3, 1, 4, 2, 5]),
        angles: angles(half),
        y: new Float32Array(7 * (heads * (head_dim + 1) + 2)),
      }),
      params: {
        ...{ rows, heads, head_dim, half, adjacent, keep_rows },
        // two heads, then the third elsewhere
        ...{ x_begin: 4, x_stride: 100, head_stride: 16, group: 2, group_stride: 50 },
        ...{ y_begin: 1, y_dim: head_dim + 1, y_stride: heads * (head_dim + 1) + 2 },
      },
      outputs: ['y'],
    };
  }),
);

const PLACED_PROJECTED = [
  [0, 0],
  [3, 0],
  [4, 0],
  [3, 1],
  [4, 1],
].map(([half = 0, adjacent = 0]): KernelCase => {
  const [rows, heads, key_heads, head_dim] = [5, 4, 2, 12];
  return {
    title: `place-projected, ${half} pairs rotate, neighbors ${adjacent}`,
    kernel: placeProjected,
    contents: () => ({
      x: floats(rows * 120, 10),
      places: Uint32Array.from([4, 0, 0, 3, 6, 2, 1, 5, 3, 4]),
      angles: angles(half),
      queries: new Float32Array(rows * heads * head_dim),
      keys: new Float32Array(7 * key_heads * head_dim),
      values: new Float32Array(7 * key_heads * head_dim),
    }),
    params: {
      ...{
        rows,
        heads,
        key_heads,
        head_dim,
        half,
        adjacent,
        x_stride: 120,
        query_begin: 1,
        query_stride: 14,
      },
      ...{ key_begin: 60, key_stride: 13, value_begin: 90, value_stride: 12 },
    },
    outputs: ['queries', 'keys', 'values'],
  };
});

const ACTIVATED = Object.entries(ACTIVATION_CODE).flatMap(([name, kind]) =>
  [4, 12, 67, 896].flatMap((inner) =>
    [0, 1].map((gated): KernelCase => {
      const rows = 3;
      const x_stride = inner * 2 + 4;
      const x = floats(rows * x_stride, 6, 8);
      // beyond ±88 a careless exponential overflows
      x.set([0, -0, 100, -100, 1e-4, -1e-4, 0.7, -0.7]);
      return {
        title: `activate ${name}, rows of ${inner}, gated ${gated}`,
        kernel: activate,
        contents: () => ({ x: x.slice(), y: floats(rows * (inner + 3), 7) }),
        params: { rows, inner, x_stride, y_stride: inner + 3, gated, kind },
        outputs: ['y'],
      };
    }),
  ),
);

const NORMED = Object.entries(NORM_CODE).flatMap(([name, kind]) =>
  (
    [
      [5, 1, 200],
      [33, 4, 16],
      [3, 2, 4],
      [3, 2, 896],
    ] as const
  ).map(([rows, groups, width]): KernelCase => {
    const x_stride4 = (groups * (width + 4)) / 4 + 1;
    return {
      title: `norm ${name} of ${rows} rows in ${groups} groups of ${width}`,
      kernel: normLine,
      contents: () => ({
        x: floats(4 + rows * x_stride4 * 4, 9, 3).map((v) => v + 1),
        weight: floats(width, 8),
        bias: floats(width, 9),
        y: floats(rows * (groups * width + 4), 12),
      }),
      params: {
        ...{ rows, groups, kind, group_stride4: (width + 4) / 4, width4: width / 4, x_begin4: 1, x_stride4 },
        ...{ y_stride4: (groups * width) / 4 + 1, biased: kind >= NORM_CODE.layer ? 1 : 0, epsilon: 1e-3 },
      },
      outputs: ['y'],
    };
  }),
);

const CAPPED_AND_ADDED = [1, 4, 1111].flatMap((elements): KernelCase[] => [
  ...[0, 3, 30].map((cap) => ({
    title: `${elements} logits capped at ${cap}`,
    kernel: capLogits,
    contents: () => ({ x: floats(elements, 15, 50) }),
    params: { elements, factor: 0.7, cap },
    outputs: ['x'],
  })),
  {
    title: `${elements} elements added`,
    kernel: addScaled,
    contents: () => ({ x: floats(elements, 13), y: floats(elements, 14) }),
    params: { elements, scale: 0.22 },
    outputs: ['y'],
  },
]);

export const ROW_CASES = [...PLACED_HEADS, ...PLACED_PROJECTED, ...ACTIVATED, ...NORMED, ...CAPPED_AND_ADDED];

/** Columns of the log-sum-exps, in segments that are whole and not. */
export const LOG_SUM_COLUMNS = [
  1,
  3,
  ...[-1, 0, 1].map((d) => LOG_SUM_SEGMENT + d),
  2 * LOG_SUM_SEGMENT + 77,
];

/** The log-sum-exp of three rows: targets at both ends, and one that is not among the columns. */
export function logSumCase(columns: number): KernelCase {
  const [rows, stride] = [3, columns + 1];
  return {
    title: `log-sum of ${columns} columns`,
    kernel: logSum,
    contents: () => ({
      logits: floats(rows * stride, 18, 30),
      targets: Uint32Array.of(100, 100 + columns - 1, 99),
      sums: new Float32Array(2 + rows * Math.ceil(columns / LOG_SUM_SEGMENT) * 2),
      picked: Float32Array.of(-1, -1, -1),
    }),
    params: { rows, columns, stride, first_column: 100, sums_begin: 2, factor: 1 },
    outputs: ['sums', 'picked'],
  };
}

/** Heads, heads per key head, head_dim / 4, value_dim / 4, window, cap, what heads have of their own, first position. */
export const ATTENTIONS = [
  [6, 3, 2, 2, NO_WINDOW, 0, 'none', 0],
  [4, 1, 6, 5, NO_WINDOW, 2, 'none', 0],
  [10, 1, 1, 1, NO_WINDOW, 0, 'slopes', 0],
  [4, 2, 5, 3, 5, 0, 'slopes', 0],
  [2, 1, 16, 16, NO_WINDOW, 0.7, 'slopes', 0],
  [3, 3, 22, 22, 3, 30, 'none', 0],
  [4, 2, 4, 4, 5, 0, 'sinks', 0],
  [3, 1, 2, 4, 1, 0, 'sinks', 0],
  [3, 3, 4, 4, CHUNKED + 7, 0, 'none', 0],
  // wider than a workgroup
  [2, 2, 3, 70, NO_WINDOW, 0, 'none', 0],
  // more keys than are taken at a time
  [2, 1, 2, 3, NO_WINDOW, 0, 'sinks', 509],
  [2, 1, 2, 3, 300, 0, 'none', 700],
] as const;

/**
 * Two sequences: ten rows with keys from row 0 on, three rows and then one with keys of their own. The first group of rows is
 * left out.
 * @param alone only this row of the first sequence
 */
export function attentionCase(
  [heads, heads_per_key, dim4, value4, window, cap, own, start]: (typeof ATTENTIONS)[number],
  alone?: number,
): KernelCase {
  const second = start + 12;
  const groups = [
    [0, 4, 0, start],
    [4, 4, 0, start + 4],
    [8, 2, 0, start + 8],
    [10, 3, second, start + 6],
    [13, 1, second, start + 9],
  ];
  const given = alone === undefined ? groups : [groups[0]!, [alone, 1, 0, start + alone]];
  const keys = ((second + start + 10) * heads * 4) / heads_per_key;
  return {
    title: `attention of ${heads} heads, ${heads_per_key} a key head, 4·${dim4} and 4·${value4} dims, window ${window}, cap ${cap}, own ${own}, from ${start} on`,
    kernel: attention,
    contents: () => ({
      q: floats(14 * heads * 4 * dim4, 20, 3),
      k: floats(keys * dim4, 21, 3),
      v: floats(keys * value4, 22),
      groups: Uint32Array.from(given.flat()),
      own: floats(heads, 23, own === 'sinks' ? 3 : 0.1),
      room: new Float32Array(4 * (start + 16)),
      y: new Float32Array(14 * heads * 4 * value4),
    }),
    params: {
      ...{ groups: given.length - 1, group_begin: 1, heads, heads_per_key, dim4, value4, window, cap },
      ...{ own_kind: OWN_CODE[own], scale: 0.3 },
    },
    outputs: ['y'],
  };
}
