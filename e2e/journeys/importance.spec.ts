/** Importance and the Gram merge by the headless command, on the sample family: both engines, masks as files. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImportanceReport } from '../../src/reports/importance';
import type { MergeReport } from '../../src/reports/merge';
import { goldenFolder } from '../goldens';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, test } from './studio';

const root = join(import.meta.dirname, '../..');
const samples = join(root, 'public/samples');
let work: string;
test.beforeEach(() => {
  work = mkdtempSync(join(tmpdir(), 'amalgam-importance-'));
});
test.afterEach(() => rmSync(work, { recursive: true, force: true }));

/** Tensors of any dtype, as their bytes. */
function storedTensors(path: string) {
  const file = readFileSync(path);
  const begin = 8 + Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString('utf8', 8, begin)) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  return new Map(
    Object.entries(header).flatMap(([name, { dtype, shape, data_offsets: at }]) =>
      name === '__metadata__'
        ? []
        : [[name, { dtype, shape, bytes: file.subarray(begin + at[0], begin + at[1]) }] as const],
    ),
  );
}

/** Copies a model or an adapter of the sample without the layers behind the second. */
function copyTwoLayers(name: string): void {
  cpSync(join(samples, name), join(work, name), { recursive: true });
  for (const file of readdirSync(join(work, name))) {
    const path = join(work, name, file);
    if (file === 'config.json') {
      const config = JSON.parse(readFileSync(path, 'utf8')) as object;
      writeFileSync(path, JSON.stringify({ ...config, num_hidden_layers: 2 }));
    }
    if (!file.endsWith('.safetensors')) continue;
    const kept = [...storedTensors(path)].filter(([tensor]) => !/\.layers\.[2-9]\./.test(tensor));
    let end = 0;
    const entries = kept.map(([tensor, { dtype, shape, bytes }]) => {
      const begin = end;
      end += bytes.length;
      return [tensor, { dtype, shape, data_offsets: [begin, end] }];
    });
    const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    writeFileSync(path, Buffer.concat([length, header, ...kept.map(([, { bytes }]) => bytes)]));
  }
}

test('importance writes one bit per weight of every linear layer, from text the model wrote', async () => {
  const out = join(work, 'masks');
  const { code, stdout, stderr } = await amalgam([
    ...['importance', join(samples, 'workshop'), '--base', join(samples, 'base'), '--out', out],
    ...['--density', '0.25', '--windows', '4', '--window', '32', '--engine', 'webgpu'],
  ]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('on the device at most');
  expect(readdirSync(out).sort()).toEqual(['amalgam-hashes.json', 'importance.json', 'masks.safetensors']);
  const report = JSON.parse(readFileSync(join(out, 'importance.json'), 'utf8')) as ImportanceReport;
  expect(report).toMatchObject({ kind: 'selection', reused: 0 });
  expect(report.contributors[0]).toMatchObject({ writtenTokens: 128, forwardTokens: 128 });
  expect(report.peakBytes).toBeGreaterThan(0);

  const masks = storedTensors(join(out, 'masks.safetensors'));
  const weights = readSafetensors(readFileSync(join(samples, 'workshop/model.safetensors'))).tensors;
  const linear = [...weights].filter(([name]) => /_proj\.weight$/.test(name));
  expect(linear.length).toBe(42);
  for (const [name, { shape }] of linear) {
    const [rows, cols] = shape as [number, number];
    const entry = masks.get(name)!;
    expect([entry.dtype, ...entry.shape], name).toEqual(['U8', rows, Math.ceil(cols / 8)]);
    let kept = 0;
    for (const byte of entry.bytes) for (let bit = 0; bit < 8; bit++) kept += (byte >> bit) & 1;
    expect(kept, name).toBe((rows * cols) / 4);
  }
});

test('masks from token ids are those of the reference, scored in f64', async () => {
  const golden = join(goldenFolder('forward'), 'llama');
  const [base, ids, out] = [join(work, 'zeros'), join(work, 'ids.json'), join(work, 'masks')];
  // over a base of zeros the change that is scored is the weight, which the reference scored
  cpSync(golden, base, { recursive: true });
  const zeros = readFileSync(join(base, 'model.safetensors'));
  zeros.fill(0, 8 + Number(zeros.readBigUInt64LE(0)));
  writeFileSync(join(base, 'model.safetensors'), zeros);
  const tokens = storedTensors(join(golden, 'golden.safetensors')).get('input_ids')!;
  writeFileSync(ids, JSON.stringify([...new Int32Array(Uint8Array.from(tokens.bytes).buffer)]));
  const { code, stderr } = await amalgam([
    ...['importance', golden, '--base', base, '--tokens', ids, '--score', 'sparsegpt', '--out', out],
  ]);
  expect(code, stderr).toBe(0);
  const masks = storedTensors(join(out, 'masks.safetensors'));
  const wanted = [...storedTensors(join(golden, 'importance.safetensors'))].filter(([name]) =>
    name.endsWith('.keep.sparsegpt.d0.2'),
  );
  expect(wanted.length).toBe(2);
  for (const [name, { shape, bytes }] of wanted) {
    const [rows, cols] = shape as [number, number];
    const mask = masks.get(name.replace('.keep.sparsegpt.d0.2', ''))!;
    const rowBytes = mask.shape[1]!;
    const kept = Array.from(
      { length: rows * cols },
      (_, e) => (mask.bytes[Math.floor(e / cols) * rowBytes + ((e % cols) >> 3)]! >> ((e % cols) & 7)) & 1,
    );
    expect(kept, name).toEqual([...bytes]);
  }
});

test('a Gram merge on WebGPU is that of the processor within 1e-4 of the changes', async () => {
  // two layers: their inputs pass through a whole layer, and every kind of matrix is there
  for (const name of ['base', 'kitchen', 'workshop']) copyTwoLayers(name);
  const base = join(work, 'base');
  const model = (name: string, text: string) =>
    `  - model: ${name}\n    parameters: { calibration: ${join(samples, 'texts', text)} }\n`;
  const file = join(work, 'gram.yml');
  writeFileSync(
    file,
    `merge_method: gram\nbase_model: ${base}\nmodels:\n${model(`${base}+${join(work, 'kitchen')}`, 'kitchen.calibration.txt')}${model(join(work, 'workshop'), 'workshop.calibration.txt')}parameters: { lambda: 0.8, calibration_windows: 8, calibration_window: 32 }\ndtype: float32\n`,
  );
  const merged = [];
  for (const engine of ['cpu', 'webgpu']) {
    const [out, report] = [join(work, engine), join(work, `${engine}.json`)];
    const args = ['merge', file, '--out', out, '--engine', engine, '--report', report];
    const { code, stderr } = await amalgam([...args]);
    expect(code, stderr).toBe(0);
    const written = JSON.parse(readFileSync(report, 'utf8')) as MergeReport;
    expect(written.engine).toBe(engine);
    expect(written.ahead!.importance).toMatchObject({ kind: 'solution', computed: 14, reused: 0 });
    merged.push(readSafetensors(readFileSync(join(out, 'model.safetensors'))).tensors);
  }
  const [cpu, webgpu] = merged as [(typeof merged)[0], (typeof merged)[0]];
  const before = readSafetensors(readFileSync(join(base, 'model.safetensors'))).tensors;
  let largest = 0;
  for (const [name, { values }] of cpu) {
    const [other, start] = [webgpu.get(name)!.values, before.get(name)!.values];
    let [difference, change] = [0, 0];
    for (let e = 0; e < values.length; e++) {
      difference += (values[e]! - other[e]!) ** 2;
      change += (values[e]! - start[e]!) ** 2;
    }
    expect(change, name).toBeGreaterThan(0);
    largest = Math.max(largest, Math.sqrt(difference / change));
  }
  console.log(`largest difference of a tensor's change: ${largest.toExponential(1)}`);
  expect(largest).toBeLessThan(1e-4);
});
