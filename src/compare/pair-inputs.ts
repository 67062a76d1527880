/** What comparing and extracting have in common: the two models, their files, and the progress of going through them. */

import type { OpenModels } from '../host/models';
import type { ProgressMeter } from '../host/progress-meter';
import { type Inputs, openInputs } from '../host/weight-inputs';
import type { ReadTensor } from '../inputs/stored-tensor';
import type { CompareProgress } from '../reports/compare';
import { bytesToDownload } from '../store/cached-source';
import { openSides, type Sides, weightFiles } from './sides';

/** Both models, which are open. Only headers and configs are read. */
export async function openBoth(
  { base, finetuned }: { base: string; finetuned: string },
  models: OpenModels,
): Promise<Sides> {
  return openSides(base, finetuned, (path) => models.open(path));
}

/** Opens the weight files of both models, downloading what is on the Hub; reading is timed. Close the inputs. */
export async function openBothFiles(
  sides: Sides,
  models: OpenModels,
  meter: ProgressMeter<CompareProgress>,
  signal: AbortSignal,
): Promise<{ inputs: Inputs; read: ReadTensor }> {
  const files = weightFiles(sides);
  const missing = await Promise.all(
    files.map(({ folder, file }) => bytesToDownload(models.file(folder, file).file)),
  );
  const bytes = missing.reduce((sum, length) => sum + length, 0);
  if (bytes > 0) meter.begin('downloading', bytes, 0);
  const inputs = await openInputs({ inputs: files }, models, signal, (came, name) =>
    meter.advance(came, name),
  );
  return { inputs, read: (...what) => meter.timed('read', () => inputs.read(...what)) };
}
