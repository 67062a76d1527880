/** The Gram merge by the headless command, on the sample family: both engines. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MergeReport } from '../../src/reports/merge';
import { writeSmallSample } from '../disk-folder';
import { readSafetensors } from './merged-folder';
import { amalgam, expect, readJson, SAMPLES, test, work } from './studio';

test('a Gram merge on WebGPU is that of the processor within 1e-4 of the changes', async () => {
  // two layers: their inputs pass through a whole layer, and every kind of matrix is there
  for (const name of ['base', 'kitchen', 'workshop'])
    await writeSmallSample(name, join(work, name), { layers: 2 });
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
    const written = readJson(report) as MergeReport;
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
