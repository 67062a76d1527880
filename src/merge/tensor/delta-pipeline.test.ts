import { describe, expect, it } from 'vitest';
import type { Backend } from '../../backend/backend';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { BLOCK } from '../../backend/kernel';
import { decodeToF32 } from '../../formats/half';
import type { DeltaPreset } from '../method';
import { mergeOn, PRESETS, syntheticTensor } from './delta-pipeline.cases';
import { oracleMask, oracleMerge } from './delta-pipeline.oracle';

const engine = createCpuBackend();
/** Half a unit in the last place of the output dtype for values below 0.5, and the f32 arithmetic on the way. */
const TOLERANCE = { F32: 1.2e-7, F16: 1.23e-4, BF16: 9.8e-4 };

describe.each(PRESETS)('%s', (_, preset) => {
  it.each(['F32', 'F16', 'BF16'] as const)('%s agrees with the f64 oracle', async (dtype) => {
    const tensor = syntheticTensor(dtype);
    const { bytes, statistics } = await mergeOn(engine, tensor, preset, 64);
    const values = new Float32Array(tensor.plan.elements);
    decodeToF32(bytes, dtype, values);
    const expected = oracleMerge(tensor.base, tensor.models, preset, 42, tensor.plan.name);
    let worst = 0;
    values.forEach((v, e) => {
      worst = Math.max(worst, Math.abs(v - expected[e]!));
    });
    expect(worst).toBeLessThan(TOLERANCE[dtype]);

    tensor.models.forEach((m, i) => {
      const mask = oracleMask(m, preset.select, 42, tensor.plan.name);
      const report = statistics.contributors[i]!;
      const norm = (keep: (e: number) => boolean) =>
        Math.sqrt(m.tau.reduce((sum, t, e) => sum + (keep(e) ? t * t : 0), 0));
      expect(report.kept).toBe(mask.reduce((a, b) => a + b, 0));
      expect(report.norm).toBeCloseTo(
        norm(() => true),
        4,
      );
      expect(report.keptNorm).toBeCloseTo(
        norm((e) => mask[e] === 1),
        4,
      );
    });
    const change = Math.sqrt(expected.reduce((s, x, e) => s + (x - tensor.base[e]!) ** 2, 0));
    const size = Math.sqrt(tensor.base.reduce((s, x) => s + x * x, 0));
    expect(statistics.outputChange).toBeCloseTo(change / size, 4);
  });

  it('gives the same bytes and statistics for any tile size', async () => {
    const tensor = syntheticTensor('BF16');
    const whole = await mergeOn(engine, tensor, preset, 64);
    for (const blocks of [1, 2, 3]) {
      const cut = await mergeOn(engine, tensor, preset, blocks);
      expect(cut.bytes).toEqual(whole.bytes);
      expect(cut.statistics).toEqual(whole.statistics);
    }
  });
});

it.each([
  [14, 'sum'],
  [17, 'sum'],
  [29, 'sum'],
  [29, 'count'],
  [14, 'kept'],
  [29, 'kept'],
] as const)('three models and %i more agree with the oracle, %s dividing', async (more, divisor) => {
  const tensor = syntheticTensor('F32', more);
  const preset: DeltaPreset = {
    ...PRESETS.find(([name]) => name === (divisor === 'kept' ? 'stitched' : 'ties'))![1],
    ...(divisor === 'count' ? { divisor } : {}),
  };
  const { bytes } = await mergeOn(engine, tensor, preset, 64);
  const merged = new Float32Array(bytes.buffer);

  const expected = oracleMerge(tensor.base, tensor.models, preset, 42, tensor.plan.name);
  const differing = merged.reduce((n, v, e) => n + (Math.abs(v - expected[e]!) > 3e-7 ? 1 : 0), 0);
  // a vote that is close to zero may go either way in f32
  expect(differing).toBeLessThan(merged.length / 2000);
});

it('waits for the engine in every pass: no more than one tile’s stored bytes are in its queue', async () => {
  const tensor = syntheticTensor('BF16');
  let queued = 0;
  let most = 0;
  const counting: Backend = {
    ...engine,
    keptBytes: 0,
    write(buffer, byteOffset, data, handOver) {
      if (buffer.label === 'raw' || buffer.label === 'stored tile') queued += data.byteLength;
      most = Math.max(most, queued);
      engine.write(buffer, byteOffset, data, handOver);
    },
    read(ranges) {
      queued = 0;
      return engine.read(ranges);
    },
  };
  const ties = PRESETS.find(([name]) => name === 'ties')![1];
  const { bytes } = await mergeOn(counting, tensor, ties, 1);
  expect(bytes).toEqual((await mergeOn(engine, tensor, ties, 64)).bytes);
  // base and full fine-tune, one block of BF16 each
  expect(most).toBe(2 * BLOCK * 2);
});

it.each([
  ['dare_linear paper', 1],
  ['dare_linear', 2],
  ['ties', 2],
  ['ties rescaled', 3],
] as const)('%s passes over a tensor of several tiles %i times', async (name, passes) => {
  const tensor = syntheticTensor('BF16');
  const { read } = tensor;
  let bytes = 0;
  tensor.read = async (ref, begin, end) => {
    if (ref.key === 'full') bytes += end - begin;
    return read(ref, begin, end);
  };
  const preset = PRESETS.find(([n]) => n === name)![1];
  // no room for stored bytes or masks
  const bare = await mergeOn({ ...engine, keptBytes: 0 }, tensor, preset, 2);
  expect(bytes).toBe(passes * tensor.plan.elements * 2);
  expect(await mergeOn(engine, tensor, preset, 2)).toEqual(bare);
});

it('stops at NaN, naming the tensor and the model', async () => {
  const tensor = syntheticTensor('F32');
  const { read } = tensor;
  tensor.read = async (ref, begin, end) => {
    const bytes = await read(ref, begin, end);
    if (ref.key === 'full' && begin === 0) new Uint32Array(bytes.buffer)[5] = 0x7fc00000;
    return bytes;
  };
  await expect(mergeOn(engine, tensor, PRESETS[1]![1], 64)).rejects.toMatchObject({
    code: 'NonFinite',
    message: expect.stringMatching(/up_proj.*1 value of full/),
  });
});
