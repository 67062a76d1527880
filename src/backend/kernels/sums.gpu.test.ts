/** Sums of stored weights in one pass on WebGPU: the bits of one kernel after another on the processor. */
import { describe, expect, it } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import type { BackendBuffer } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { BLOCK, blockCount, type Kernel } from '../kernel';
import { DTYPE_CODE, decode, inputWords } from './encoding';
import { bytesAfter, firstDifference, floats, packedWords, sharedGpu } from './kernels.test.support';
import { innerProducts, pairCount } from './products';
import { mergeCounts } from './statistics';
import { storedSums, storedSumWords, weightedSum } from './sums';

const DTYPES: WeightDtype[] = ['BF16', 'F16', 'F32'];
const cpu = createCpuBackend();
const gpu = await sharedGpu();

interface Case {
  n: number;
  models: number;
  hasBase: boolean;
  anchor: number;
  dtype: number;
  raw: Uint32Array<ArrayBuffer>;
  inputs: Uint32Array<ArrayBuffer>;
  coefficients: Float32Array<ArrayBuffer>;
}

function caseOf(n: number, models: number, hasBase: boolean, anchor: number, table: readonly number[]): Case {
  const words = n + 3;
  const raw = new Uint32Array((models + 1) * words);
  const dtypeOf = (slot: number) => DTYPES[(slot + anchor) % 3]!;
  for (let slot = 0; slot <= models; slot++) {
    const stored = packedWords(floats(n, 40 + slot), n, dtypeOf(slot), words);
    // NaN, infinity, −0
    if (n > 90) stored.set([0xffc17f80, 0x80008000], 20 + slot);
    raw.set(stored, slot * words);
  }
  const inputs = Array.from({ length: models + 1 }, (_, slot) =>
    slot > 0 || hasBase ? inputWords('whole', slot * words, dtypeOf(slot)) : inputWords('leave'),
  );
  return {
    ...{ n, models, hasBase, anchor, raw, dtype: DTYPE_CODE[DTYPES[models % 3]!] },
    inputs: Uint32Array.from(inputs.flat()),
    coefficients: Float32Array.from([...table, 0.3, 0, -0.7, 0.25].slice(0, models + 2)),
  };
}

interface Outcome {
  packed: Uint32Array;
  sums: Uint32Array;
  status: Uint32Array;
}

async function inOnePass({ n, models, hasBase, anchor, dtype, ...tables }: Case): Promise<Outcome> {
  const kernel = storedSums[hasBase ? 'base' : 'alone'][models - 1]!;
  const contents = {
    ...tables,
    packed: new Uint32Array(n + 1),
    sums: new Uint32Array(blockCount(n) * storedSumWords(models)).fill(77),
    status: new Uint32Array(models + 2),
  };
  const params = { elements: n, anchor, dtype, status: models + 1 };
  const after = await bytesAfter(gpu, kernel as Kernel, contents, params);
  return after as unknown as Outcome;
}

/** The separate kernels, and their results laid out as those of the one. */
async function oneByOne(c: Case): Promise<Outcome> {
  const { n, models, hasBase, anchor, dtype } = c;
  const stride = Math.ceil(n / 4) * 4;
  const blocks = blockCount(n);
  const [pairs, words] = [pairCount(models + 1), storedSumWords(models)];
  const make = (size: number, data?: Uint32Array<ArrayBuffer> | Float32Array<ArrayBuffer>) => {
    const buffer = cpu.allocate(size * 4, 'operand');
    if (data) cpu.write(buffer, 0, new Uint8Array(data.buffer.slice(0)));
    return buffer;
  };
  const raw = make(c.raw.length, c.raw);
  const inputs = make(c.inputs.length, c.inputs);
  const coefficients = make(models + 2, c.coefficients);
  const [values, packed] = [make((models + 1) * stride), make(n + 1)];
  const [status, sums, change] = [make(models + 2), make(blocks * pairs), make(blocks)];
  const every = { groups: blocks, elements: n };
  cpu.run(decode, {
    params: { elements: n, stride, slots: models + 1 },
    buffers: { raw, inputs, values, status },
    ...every,
  });
  cpu.run(innerProducts, {
    params: { elements: n, slot: 0, stride, count: models + 1, run: BLOCK },
    buffers: { values, sums },
    ...every,
  });
  const sum = { slot: stride, stride, count: models, anchor, per: 0xffffffff, groups: 1 };
  cpu.run(weightedSum, {
    params: { elements: n, ...sum, dtype, status: models + 1 },
    buffers: { values, coefficients, packed, sums: change, status },
  });
  const same: number[] = [];
  const counts = make(1);
  const read = async (buffer: BackendBuffer) => {
    const [bytes] = await cpu.read([{ buffer, byteLength: buffer.byteLength }]);
    return new Uint32Array(bytes!.buffer);
  };
  const all = { packed: await read(packed), status: await read(status) };
  const [found, changes] = [await read(sums), await read(change)];
  const decoded = await read(values);
  for (let block = 0; block < blocks; block++) {
    const [begin, end] = [block * BLOCK, Math.min(n, (block + 1) * BLOCK)];
    const half = dtype === 0 ? 1 : 2;
    const base = make(BLOCK, decoded.slice(begin, end));
    const part = make(BLOCK, all.packed.slice(begin / half, Math.ceil(end / half)));
    cpu.clear(counts);
    cpu.run(mergeCounts, {
      params: { elements: end - begin, stride: BLOCK, models: 0, election: 0, zero_negative: 0, dtype },
      buffers: { values: base, coefficients, packed: part, counts },
      groups: 1,
      elements: end - begin,
    });
    same.push((await read(counts))[0]!);
  }
  const laid = new Uint32Array(blocks * words);
  for (let block = 0; block < blocks; block++) {
    for (let pair = hasBase ? 0 : models + 1; pair < pairs; pair++) {
      laid[block * words + pair] = found[block * pairs + pair]!;
    }
    laid.set([changes[block]!, same[block]!], block * words + pairs);
  }
  return { ...all, sums: laid };
}

describe.each([
  ...storedSums.base.map((kernel, i) => [kernel.id, i + 1, true] as const),
  ...storedSums.alone.map((kernel, i) => [kernel.id, i + 1, false] as const),
])('%s', (_, models, hasBase) => {
  it.each([1, 3, 255, 4095, 4097, 33_001])('%i elements', async (n) => {
    for (const [anchor, table] of [
      [0, [1, 1, 0.5]],
      [models - 1, [0.6, 0, 0]],
      [0, [0, 0, 0]],
      [models - 1, [1, 0, 1]],
    ] as const) {
      const c = caseOf(n, models, hasBase, anchor, table);
      const [got, wanted] = [await inOnePass(c), await oneByOne(c)];
      for (const name of ['packed', 'sums', 'status'] as const) {
        const at = firstDifference(name, got[name], wanted[name]);
        expect(at, `${name}[${at}], anchor ${anchor}: ${got[name][at]} and ${wanted[name][at]}`).toBe(-1);
      }
      if (n > 90)
        expect(got.status.subarray(hasBase ? 0 : 1, models + 1).every((count) => count > 0)).toBe(true);
    }
  });
});
