/** The masks of a recipe's contributors as files: for other tools, and to look at. */

import { AmalgamError } from '../errors';
import { buildSafetensorsHeader, type PlannedTensor } from '../formats/safetensors-write';
import type { OpenModels } from '../host/models';
import { withResources } from '../host/resources';
import { methodById } from '../merge/methods';
import { requireClean } from '../merge/plan/clean-plan';
import { importanceKind } from '../merge/plan/importance-kind';
import type { Plan } from '../merge/plan/plan';
import { requirePrepared } from '../merge/tensor/prepared';
import type { ImportanceReport, ImportanceRequest } from '../reports/importance';
import type { Progress } from '../reports/job';
import { beginLeaves } from '../sources/tree-hash';
import { commitOutput, writeWhole } from '../write/output-commit';
import { calibrationMessage } from './calibration-context';
import { calibrate } from './job';

/**
 * Works out the masks of a plan and writes `masks.safetensors`, a tensor of bytes [rows, ⌈cols/8⌉] for every mask with
 * the lowest bit first, or `<name>` in f32 with the compensated values of the kept elements; and `importance.json`.
 * @throws AmalgamError `PlanHasErrors`, `Usage` for a recipe without importance, and as calibration and writing throw
 */
export async function runImportance(
  request: ImportanceRequest,
  plan: Plan,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
): Promise<ImportanceReport> {
  requireClean(plan);
  if (importanceKind(plan, methodById) !== 'selection') {
    throw new AmalgamError('Usage', 'The recipe asks for no importance.', 'Set selector: importance.');
  }
  return withResources(async ({ output }) => {
    const destination = await output(request.destination);
    const calibrated = await calibrate(plan, {
      models,
      engine: request.engine,
      signal,
      onProgress: (progress) => onProgress(calibrationMessage(progress)),
    });
    const report = calibrated!.report.importance!;
    const prepared = requirePrepared(calibrated!.prepared, 'the report');
    const entries = plan.tensors.flatMap(({ name, shape, models: contributors }) =>
      contributors.flatMap(({ id }) => {
        const selection = prepared.selection(name, id);
        const prefix = contributors.length > 1 ? `${id}/` : '';
        return selection ? [{ name: `${prefix}${name}`, shape, selection }] : [];
      }),
    );
    const planned = entries.map(({ name, shape, selection }): PlannedTensor => {
      const [rows, cols] = shape as [number, number];
      if (selection.kind === 'values') {
        return { name, dtype: 'F32', shape, byteLength: rows * cols * 4 };
      }
      const rowBytes = Math.ceil(cols / 8);
      return { name, dtype: 'U8', shape: [rows, rowBytes], byteLength: rows * rowBytes };
    });
    const sink = await destination.create('masks.safetensors');
    const hasher = beginLeaves();
    let length = 0;
    const write = async (bytes: Uint8Array<ArrayBuffer>) => {
      await hasher.update(bytes);
      await sink.write(bytes, length);
      length += bytes.byteLength;
    };
    await write(buildSafetensorsHeader(planned, { amalgam: 'importance' }));
    for (const { shape, selection } of entries) {
      const [rows, cols] = shape as [number, number];
      if (selection.kind === 'values') {
        const values = await selection.values(0, rows * cols);
        await write(new Uint8Array(values.buffer));
      } else await write(rowsOfBytes(await selection.mask(0, rows * cols), rows, cols));
    }
    await sink.close(await hasher.leaves(), length);
    await writeWhole(destination, 'importance.json', `${JSON.stringify(report, null, 2)}\n`);
    await commitOutput(destination, Object.fromEntries(calibrated!.hashes));
    return report;
  });
}

/** Flat bits as rows of whole bytes, lowest bit first. */
function rowsOfBytes(bits: Uint32Array, rows: number, cols: number): Uint8Array<ArrayBuffer> {
  const rowBytes = Math.ceil(cols / 8);
  const out = new Uint8Array(rows * rowBytes);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      const e = r * cols + c;
      out[r * rowBytes + (c >>> 3)]! |= ((bits[e >>> 5]! >>> (e & 31)) & 1) << (c & 7);
    }
  }
  return out;
}
