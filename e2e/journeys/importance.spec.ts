/** The Gram merge by the headless command, on the sample family: both engines. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MergeReport } from '../../src/reports/merge';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, SAMPLES, test } from './studio';

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
  cpSync(join(SAMPLES, name), join(work, name), { recursive: true });
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

test('a Gram merge on WebGPU is that of the processor within 1e-4 of the changes', async () => {
  // two layers: their inputs pass through a whole layer, and every kind of matrix is there
  for (const name of ['base', 'kitchen', 'workshop']) copyTwoLayers(name);
  const base = join(work, 'base');
  const model = (name: string, text: string) =>
    `  - model: ${name}\n    parameters: { calibration: ${join(SAMPLES, 'texts', text)} }\n`;
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
