/** A fine-tune as a LoRA on its base: truncated singular value decompositions of what changed, in PEFT's file format. */

import { isWeightDtype, weightBytes } from '../../formats/dtype';
import { peftConfigText, taskOf } from '../../formats/peft-config';
import { parseModelRef } from '../../formats/recipe';
import type { ModelTensor } from '../../inputs/model';
import { nameSome } from '../../inputs/problems';
import { isPlain } from '../../merge/plan/untouched-tensors';
import { AMALGAM_VERSION } from '../../merge/version';
import type { RankChoice } from '../../reports/lora';
import { hubCommit } from '../../sources/model-folder';
import { bytesToCompare } from '../difference/compare-tensors';
import { count, percent, real } from '../difference/findings';
import { SPECTRUM_VALUES } from '../difference/likeness';
import { visitPairs } from '../difference/pair-task';
import { mayDiffer, pairElements, type TensorPair, type TensorPairs } from '../difference/tensor-pairs';
import {
  type AdapterEntry,
  type AdapterFile,
  adapterCard,
  adapterFile,
  copied,
  factorEntries,
  inMemory,
} from './adapter-file';
import { checkExtraction, checkMerged, type MergeCheck, requireChange } from './checks';
import {
  type ChangedTensors,
  changedTensors,
  type ExtractOptions,
  encoded,
  type FactorModule,
  hasBias,
  matrixModules,
  peftName,
  targetOf,
} from './lora-modules';
import { ranksOf } from './rank-choice';
import type { ExtractLoraReport } from './report';

// The tensors of an adapter under PEFT's key names (its `save_and_load.py`), from what changed and the ranks chosen.

/** Of PEFT's keys. */
export const PREFIX = 'base_model.model.';

/**
 * Whether the changes of biases can be carried as biases of lora_B: PEFT then wants one for every target, adds it to the
 * target's own bias, and knows none for embeddings.
 */
function canCarryBiases({ modules, biases }: ChangedTensors, { base }: ExtractOptions): boolean {
  return (
    biases.size > 0 &&
    modules.length > 0 &&
    modules.every(({ module, kind }) => kind === 'linear' && hasBias(base, module))
  );
}

/** lora_B.bias of every module, zeros where its bias did not change. */
function biasEntries(
  modules: readonly FactorModule[],
  { biases }: ChangedTensors,
  { dtype }: ExtractOptions,
): AdapterEntry[] {
  return modules.map(({ module, factors }) => {
    const delta = biases.get(module)?.delta ?? new Float32Array(factors.outputs);
    return inMemory(`${PREFIX}${module}.lora_B.bias`, dtype, [delta.length], () => encoded(delta, dtype));
  });
}

/**
 * Every tensor of the saved modules as the fine-tune has it: copied byte for byte, or computed in f32 where an adapter
 * makes it. A tied head goes with its embedding, since PEFT saves both apart.
 */
async function savedEntries(
  saved: ReadonlySet<string>,
  options: ExtractOptions,
): Promise<{ entries: AdapterEntry[]; modules: string[]; left: ChangedTensors['left'] }> {
  const { base, tuned } = options;
  const wanted: { name: string; tensor: ModelTensor }[] = [];
  const modules = new Set(saved);
  for (const [key, tensor] of tuned.tensors) {
    const name = peftName(tensor.name, key, tuned);
    if (saved.has(moduleOf(name))) wanted.push({ name, tensor });
    if (key !== tuned.embedding || !base.tied || !tuned.tied || tuned.head === undefined) continue;
    if (!saved.has(moduleOf(name))) continue;
    wanted.push({ name: tuned.head, tensor });
    modules.add(moduleOf(tuned.head));
  }
  const entries: AdapterEntry[] = [];
  const left: ChangedTensors['left'] = [];
  for (const { name, tensor } of wanted) {
    const { view } = tensor;
    if (!isWeightDtype(view.origin.dtype)) {
      left.push({ name, normDelta: null, why: `it is stored as ${view.origin.dtype}` });
    } else if (isPlain(view)) entries.push(copied(PREFIX + name, view.origin));
    else {
      const bytes = await computed(tensor, options);
      entries.push(inMemory(PREFIX + name, 'F32', tensor.shape, () => bytes));
    }
  }
  return { entries, modules: [...modules], left };
}

export function moduleOf(name: string): string {
  return name.replace(/\.(?:weight|bias)$/, '');
}

/** The f32 values of a version that an adapter makes. */
async function computed(
  tensor: ModelTensor,
  { engine, read, tileElements, signal }: ExtractOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const pair: TensorPair = { name: tensor.name, key: tensor.name, base: tensor, tuned: tensor };
  const bytes = new Uint8Array(pairElements(pair) * 4);
  const tools = { engine, read, ...(tileElements && { tileElements }), ...(signal && { signal }) };
  await visitPairs([pair], tools, ({ task, work }) =>
    task.pass(async ({ begin, end }) => {
      const [tile] = await engine.read([
        { buffer: work.values, byteOffset: 2 * work.stride * 4, byteLength: (end - begin) * 4 },
      ]);
      bytes.set(tile!, begin * 4);
    }),
  );
  return bytes;
}

export interface ExtractedLora {
  file: AdapterFile;
  config: string;
  card: string;
  report: Omit<ExtractLoraReport, 'files' | 'stages' | 'seconds'>;
}

/**
 * Extracts an adapter. Nothing is written: the result holds the files.
 *
 * @param notes sentences about how the models were put together
 * @throws AmalgamError `Usage` for requests that cannot be meant, `NothingToExtract` when the models do not belong together
 *   or nothing that differs can be carried, `LimitExceeded` when a byte budget is too small, `NonFinite`, `Canceled`, and
 *   what reading and the engine throw
 */
export async function extractLora(options: ExtractOptions, notes: readonly string[]): Promise<ExtractedLora> {
  const { base, tuned, rank: choice, engine } = options;
  const pairs = checkExtraction(options);
  const shared = pairs.shared.filter(mayDiffer);
  options.onPhase?.('extracting', bytesToCompare({ shared, raw: [] }), shared.length);
  const changed = await changedTensors(shared, options);
  changed.compared = pairs.shared.filter((pair) => pairElements(pair) > 0).length;
  addUnpaired(changed, pairs, options);
  requireChange(changed, options);

  const { entries: wholes, modules: savedModules, left } = await savedEntries(changed.saved, options);
  for (const it of left) changed.left.push(it);
  const carriesBiases = canCarryBiases(changed, options);
  const { dtype } = options;
  const factored = changed.modules.map(({ values, rank, factors }) => ({ values, rank, ...factors }));
  const biasBytes = factored.reduce((sum, { outputs }) => sum + outputs * weightBytes(dtype), 0);
  const ranks = ranksOf(choice, factored, dtype, {
    tensors: wholes.length + (carriesBiases ? changed.biases.size : 0),
    bytes: wholes.reduce((sum, { byteLength }) => sum + byteLength, carriesBiases ? biasBytes : 0),
  });
  const chosen = changed.modules.filter((_, i) => ranks[i]! > 0);
  const chosenRanks = ranks.filter((rank) => rank > 0);
  leaveRest(changed, ranks, carriesBiases);
  const entries = [
    ...factorEntries(changed.modules, ranks, options),
    ...(carriesBiases ? biasEntries(chosen, changed, options) : []),
    ...wholes,
  ];
  const file = adapterFile(entries, { amalgam_version: AMALGAM_VERSION }, options.read);
  const config = peftConfigText({
    ...baseName(options),
    modules: chosen.map(({ module }, i) => ({ module, rank: chosenRanks[i]! })),
    all: matrixModules(base),
    saved: savedModules,
    loraBias: carriesBiases,
    fanInFanOut: chosen.some(({ kind, transposed }) => kind === 'linear' && transposed),
    tied: isTiedTable(chosen, options),
    task: taskOf(base.checkpoint.config?.architectures ?? []),
  });
  const check = await checkMerged(file, config, options);
  const report = {
    base: base.ref,
    finetuned: tuned.ref,
    engine: engine.kind,
    adapter: engine.adapter,
    version: AMALGAM_VERSION,
    rank: choice,
    modules: chosen.map((m, i) => describeModule(m, chosenRanks[i]!, check)),
    saved: wholes.map(({ name, shape, byteLength }) => ({ name, shape: [...shape], bytes: byteLength })),
    left: changed.left,
    merged: describeMerge(changed, check),
    parameters: entries.reduce((sum, { shape }) => sum + shape.reduce((n, extent) => n * extent, 1), 0),
    notes: [...notes, ...notesOf(changed, ranks, options)],
  };
  return { file, config, card: adapterCard(report, rankWords(choice), hubId(options)), report };
}

/** Tensors on one side only or of two shapes: a resized embedding or a head of its own is saved whole. */
function addUnpaired(changed: ChangedTensors, pairs: TensorPairs, { base, settings }: ExtractOptions): void {
  const leave = (name: string, why: string) => changed.left.push({ name, normDelta: null, why });
  for (const { name, base: shape, finetuned } of pairs.shapeMismatches) {
    const key = [...base.tensors].find(([, tensor]) => tensor.name === name)![0];
    const target = targetOf({ name, shape }, key, base, settings);
    if ((key === base.embedding || key === base.head) && 'module' in target) {
      changed.saved.add(target.module);
      changed.changed.push(name);
    } else leave(name, `its shape is [${shape}] in the base and [${finetuned}] in the fine-tune`);
  }
  for (const name of pairs.onlyInFinetuned) leave(name, 'the base has no such tensor');
  for (const name of pairs.onlyInBase) leave(name, 'the fine-tune has no such tensor, so the base’s stays');
  for (const { name, tuned: version } of pairs.raw) {
    leave(name, `it is stored as ${version.view.origin.dtype}, which is not computed with`);
  }
}

/** Records the changes that the chosen ranks and PEFT's rules for biases leave out. */
function leaveRest(changed: ChangedTensors, ranks: readonly number[], carriesBiases: boolean): void {
  const targets = new Set(changed.modules.filter((_, i) => ranks[i]! > 0).map(({ module }) => module));
  for (const [i, { pair, squares }] of changed.modules.entries()) {
    if (ranks[i] !== 0) continue;
    changed.left.push({
      name: pair.name,
      normDelta: Math.sqrt(squares),
      why: 'the byte budget has no room for it',
    });
  }
  for (const [module, { name, norm }] of changed.biases) {
    if (carriesBiases && targets.has(module)) continue;
    const why = carriesBiases
      ? 'its weight does not change, so it is no target of the adapter'
      : 'PEFT takes biases of lora_B only when every target has a bias';
    changed.left.push({ name, normDelta: norm, why });
  }
}

function baseName({ base }: ExtractOptions): { base: string; revision?: string } {
  const hub = hubCommit(base.checkpoint.folder.origin);
  return hub ? { base: hub.repo, revision: hub.commit } : { base: parseModelRef(base.ref).model.path };
}

function hubId({ base }: ExtractOptions): string | undefined {
  return hubCommit(base.checkpoint.folder.origin)?.repo;
}

function describeModule(
  { module, kind, pair, values, squares, exact }: ChangedTensors['modules'][number],
  rank: number,
  check: MergeCheck,
): ExtractLoraReport['modules'][number] {
  const found = check.tensors.get(pair.name);
  const normDelta = Math.sqrt(squares);
  return {
    module,
    kind,
    shape: [...pair.base.shape],
    rank,
    fullRank: Math.min(...pair.base.shape),
    normDelta,
    singularValues: [...values.slice(0, SPECTRUM_VALUES)],
    exact,
    error: found ? Math.sqrt(found.squares) / normDelta : null,
    maxError: found?.largest ?? null,
  };
}

function describeMerge(changed: ChangedTensors, check: MergeCheck): ExtractLoraReport['merged'] {
  const found = [...check.tensors.values()];
  const rest = Math.sqrt(found.reduce((sum, { squares }) => sum + squares, 0));
  const delta = Math.sqrt([...changed.squares.values()].reduce((sum, squares) => sum + squares, 0));
  return {
    error: delta > 0 ? rest / delta : 0,
    maxError: found.reduce((most, { largest }) => Math.max(most, largest), 0),
    failed: check.failed,
  };
}

function notesOf(
  { modules, saved }: ChangedTensors,
  ranks: readonly number[],
  { base, tuned, rank: choice, maxRank }: ExtractOptions,
): string[] {
  const notes: string[] = [];
  const names = (of: typeof modules) => nameSome(of.map(({ module }) => module));
  const sideOf = ({ pair }: (typeof modules)[number]) => Math.min(...pair.base.shape);
  if (choice.kind === 'rank') {
    const narrow = modules.filter((m) => sideOf(m) < choice.rank);
    if (narrow.length > 0) {
      notes.push(
        `Rank ${choice.rank} is above the smaller side of ${narrow.length} of ${count(modules.length, 'module')}; those get their full rank: ${names(narrow)}.`,
      );
    }
    const poor = modules.filter((m, i) => ranks[i]! < Math.min(choice.rank, sideOf(m)));
    if (poor.length > 0)
      notes.push(
        `${count(poor.length, 'module')} ${poor.length === 1 ? 'differs' : 'differ'} in fewer directions than rank ${choice.rank}: ${names(poor)}.`,
      );
  }
  const short = modules.filter(({ reached }) => !reached);
  if (short.length > 0) {
    notes.push(
      `${short.length} of ${count(modules.length, 'module')} would need more than rank ${maxRank}, the largest allowed: ${names(short)}.`,
    );
  }
  if (isTiedTable(modules, { base, tuned })) {
    notes.push(
      'The head is tied to the embedding, and its config says so (ensure_weight_tying): PEFT from 0.19 on changes both ends.',
    );
  }
  const resized = saved.size > 0 && base.embedding !== undefined && rowsOf(base) !== rowsOf(tuned);
  if (resized) {
    notes.push(
      `The vocabulary has ${rowsOf(base)} rows in the base and ${rowsOf(tuned)} in the fine-tune: resize the base's embeddings before the adapter is loaded.`,
    );
  }
  return notes;
}

/** Whether factors of an embedding hold for the head that is tied to it. */
function isTiedTable(
  modules: readonly { kind: string }[],
  { base, tuned }: Pick<ExtractOptions, 'base' | 'tuned'>,
): boolean {
  return base.tied && tuned.tied && modules.some(({ kind }) => kind === 'embedding');
}

function rowsOf({ tensors, embedding }: ExtractOptions['base']): number | undefined {
  return embedding === undefined ? undefined : tensors.get(embedding)?.shape[0];
}

function rankWords(choice: RankChoice): string {
  switch (choice.kind) {
    case 'rank':
      return `rank ${choice.rank}`;
    case 'energy':
      return `with ${percent(choice.share)} of the energy of each`;
    case 'cutoff':
      return `singular values down to ${real(choice.ratio)} of the largest`;
    case 'bytes':
      return `within ${choice.bytes} bytes`;
  }
}
