import { join } from 'node:path';
import { ensureBuilt } from '../../src/cli/build';

/** Builds what the headless command serves, before two journeys want it at once. */
export default async function buildCommand(): Promise<void> {
  await ensureBuilt(join(import.meta.dirname, '../..'), () => {});
}
