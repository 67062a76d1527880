/** The statistics pass in a process of its own, as the studio's worker makes it: `node statistics.mjs recipe.yml cache`. */
import process from 'node:process';
import type { Undo } from '../../src/cli/arguments';
import { openJob, readRecipe } from '../../src/cli/job';

const [file = '', cache = ''] = process.argv.slice(2);
const undo: Undo = [];
const write = async () => {};
const place = { workingFolder: process.cwd(), undo, say: () => true, write };
const { calls, recipe } = await openJob(await readRecipe(file), file, place, { cache, engine: 'cpu' });
const { tensors } = await calls.deltaStatistics({ recipe, engine: 'cpu' }, () => {});
process.stdout.write(`${tensors.length} tensors measured\n`);
for (const act of undo.reverse()) await act();
process.exit(0);
