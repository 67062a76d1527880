/**
 * Wall time of every method on both engines, for a million elements of the output: a generated checkpoint of 3.5 million
 * parameters in bfloat16 goes with up to three fine-tunes through the command's engine in this process; nothing is
 * written. Reading, computing and reading back are in the time, hashing the inputs is too.
 *
 *     npm run bench:methods -- [--method PATTERN] [--engine cpu|webgpu] [--repeat 3]
 *
 * Where there is no graphics device, `VK_ICD_FILENAMES` chooses a software driver.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createServer } from 'vite';
import type { Recipe } from '../../src/formats/recipe';
import type { MergeMethod } from '../../src/merge/method';
import type { BackendKind } from '../../src/reports/backend';
import type { WorkerCalls } from '../../src/worker/calls';
import { checkpoint, QWEN_SLICE, type Shape } from './checkpoints';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(PROJECT, 'node_modules', '.cache', 'amalgam-bench');
const MODELS = 3;
const SHAPE: Shape = {
  ...QWEN_SLICE,
  name: 'methods',
  layers: 1,
  hidden: 512,
  ffn: 1536,
  vocabulary: 1024,
  heads: 8,
};

const { values: options } = parseArgs({
  options: {
    method: { type: 'string', default: '' },
    engine: { type: 'string' },
    repeat: { type: 'string', default: '3' },
  },
});

/** Values for parameters without a default, and a density of one half. */
const VALUES: Readonly<Record<string, number>> = { weight: 1, density: 0.5, t: 0.3 };

function recipeOf(method: MergeMethod, semantics: string | undefined): Recipe {
  const given = (specs: MergeMethod['parameters']) =>
    Object.fromEntries(Object.entries(VALUES).filter(([name]) => Object.hasOwn(specs, name)));
  const count = Math.min(MODELS, method.models.max);
  return {
    mergeMethod: method.id,
    ...(method.base === 'none' ? {} : { baseModel: 'bench/base' }),
    models: Array.from({ length: count }, (_, i) => ({
      model: `bench/tuned-${i + 1}`,
      parameters: given(method.modelParameters),
    })),
    parameters: { ...given(method.parameters), ...(semantics ? { semantics } : {}) },
    amalgam: {},
  };
}

/** Milliseconds for a million elements, the best of some runs. */
async function measure(calls: WorkerCalls, recipe: Recipe, engine: BackendKind): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < Number(options.repeat); round++) {
    const report = await calls.merge({ recipe, engine, destination: { kind: 'nowhere' } }, () => undefined);
    const elements = report.tensors.reduce((sum, tensor) => sum + tensor.elements, 0);
    best = Math.min(best, (report.seconds * 1000) / (elements / 1e6));
  }
  return best;
}

// what imports shaders is read by Vite
const vite = await createServer({
  server: { middlewareMode: true, ws: false },
  appType: 'custom',
  logLevel: 'error',
  // Node alone does not find a file of it whose ending is not named
  ssr: { noExternal: ['comlink'] },
});
const [{ methods }, { openNodeEngine }] = (await Promise.all(
  ['/src/merge/methods/index.ts', '/src/cli/node-worker.ts'].map((path) => vite.ssrLoadModule(path)),
)) as [{ methods: readonly MergeMethod[] }, typeof import('../../src/cli/node-worker')];
mkdirSync(CACHE, { recursive: true });
const { calls, listModel, close } = await openNodeEngine(CACHE, join(PROJECT, 'public/samples'), 'webgpu');
try {
  for (let i = 0; i <= MODELS; i++) {
    const folder = await checkpoint(CACHE, SHAPE, i);
    await listModel(folder);
    await calls.openDisk(i === 0 ? 'bench/base' : `bench/tuned-${i}`, folder);
  }
  const engines = (['cpu', 'webgpu'] as const).filter((e) => (options.engine ?? e) === e);
  console.log(`| method | models | ${engines.map((e) => `${e}, ms for 10⁶ elements`).join(' | ')} |`);
  console.log(`|---|---:|${'---:|'.repeat(engines.length)}`);
  // those that run the models on a text first are measured by what that takes
  for (const method of methods.filter(
    (m) => m.compute.kind !== 'solved' && new RegExp(options.method).test(m.id),
  )) {
    const whole = method.wholeModel?.({ semantics: 'paper' }).includes('density');
    for (const semantics of whole ? [undefined, 'paper'] : [undefined]) {
      const recipe = recipeOf(method, semantics);
      const cells = [];
      for (const engine of engines) {
        const time = await measure(calls, recipe, engine).catch((thrown: Error) => thrown);
        cells.push(typeof time === 'number' ? time.toFixed(1) : '–');
        if (typeof time !== 'number') console.error(`${method.id} on ${engine}: ${time.message}`);
      }
      const name = `\`${method.id}\`${semantics ? ` · ${semantics}` : ''}`;
      console.log(`| ${name} | ${recipe.models!.length} | ${cells.join(' | ')} |`);
    }
  }
} finally {
  await close();
  await vite.close();
}
// Dawn never lets the process end
process.exit();
