/** One merge from a clean plan to a committed output: download, hash, small files, run, index last. */

import type { Backend } from '../backend/backend';
import { calibrationPhases } from '../calibration/calibration-context';
import { calibrate } from '../calibration/job';
import { AmalgamError, type ErrorCode, errorReport } from '../errors';
import { type CardResult, cardWithResults } from '../formats/card-results';
import { isTreeHash, textSha256 } from '../formats/hashes';
import { withRecipeLink } from '../formats/model-card';
import { parseModelConfig } from '../formats/model-config';
import { PART_FILE } from '../formats/output-part';
import { formatRecipe } from '../formats/recipe-format';
import { tensorBytes } from '../formats/safetensors-header';
import { snippetSection, snippetsOf, type UseSnippet } from '../formats/use-snippets';
import { openBackend, threadCount } from '../host/backends';
import type { OpenModels } from '../host/models';
import { type Phases, type PlannedPhase, progressMeter, trackPhases } from '../host/progress-meter';
import { type HashedInputs, openHashedInputs } from '../host/weight-inputs';
import { inputName } from '../inputs/stored-tensor';
import { methodById } from '../merge/methods';
import { writtenExtras } from '../merge/plan/gguf-plan';
import { type Plan, requireClean } from '../merge/plan/plan';
import { finishShards } from '../merge/plan/shards';
import { writeIndex, writeSmallFiles } from '../merge/run/output-files';
import { type OpenMergeThreads, openMergeThreads } from '../merge/run/remote-thread';
import { runPlan } from '../merge/run/run';
import { deviceRecovery } from '../merge/run/run-workspace';
import { measuredTensors } from '../merge/run/whole-model';
import { AMALGAM_VERSION, studioAddress } from '../merge/version';
import type { DestinationSpec, PhaseSeconds, Progress } from '../reports/job';
import type { MergeReport, MergeRequest } from '../reports/merge';
import type { ModelFile } from '../sources/model-folder';
import type { Destination, WrittenShard } from '../write/destination';
import { openDestination } from '../write/opened-destination';
import { commitOutput, writeWhole } from '../write/output-commit';
import type { RunJournal } from '../write/run-journal';
import { type GgufOutput, openGguf } from './gguf-output';
import { openMeasured, partRecord, planPart } from './output-part';
import { openRunRecord } from './run-record';
import type { ShardWatch } from './verification-job';

// How an output is run elsewhere: for its report, and as the last section of its model card.

/** Name of an output that nobody has named. */
const UNNAMED = 'merged';

/** @param gguf name of its GGUF file, where it has one */
function usesOf(plan: Plan, destination: DestinationSpec, gguf: string | undefined): UseSnippet[] {
  const { amalgam, name: titled } = plan.recipe;
  const name = ('name' in destination ? destination.name : undefined) ?? titled ?? UNNAMED;
  const adapter = textOf(plan, 'adapter_config.json');
  if (adapter !== undefined) {
    // written here a moment ago
    const config = JSON.parse(adapter) as Record<string, unknown>;
    const field = (key: string) => (typeof config[key] === 'string' ? config[key] : undefined);
    const base = field('base_model_name_or_path') ?? '';
    return snippetsOf({
      ...{ name, model: false, base, peft: !amalgam.ggufOnly },
      ...optional('gguf', gguf),
      ...optional('architecture', field('task_type')),
    });
  }
  return snippetsOf({
    name,
    ...imageOf(plan),
    model: !amalgam.ggufOnly,
    ...optional('gguf', gguf),
    ...optional('architecture', architectureOf(textOf(plan, 'config.json'))),
  });
}

function imageOf({ adapterFile, places, shards }: Plan): Pick<Parameters<typeof snippetsOf>[0], 'image'> {
  if (adapterFile !== undefined) return { image: { file: adapterFile, of: 'LoRA' } };
  const [shard] = shards;
  if (!places || !shard) return {};
  const isAll = [...places.keys()].some((name) =>
    /^(?:model\.diffusion_model|first_stage_model)\./.test(name),
  );
  const of = shards.length > 1 || shard.file.includes('/') ? 'pipeline' : isAll ? 'checkpoint' : 'part';
  return { image: { file: shard.file, of } };
}

/** The small files, the card among them with the section, with what was scored, and where a recipe made it with a link to that. */
function cardsWithUses(
  plan: Plan,
  use: readonly UseSnippet[],
  results: readonly CardResult[],
  destination: DestinationSpec,
  recipe: string,
): Plan['extras'] {
  const name = 'name' in destination ? destination.name : UNNAMED;
  return writtenExtras(plan).map((extra) => {
    const { path, content } = extra;
    if (path !== 'README.md' || !('text' in content)) return extra;
    const card = plan.madeBy ? content.text : withRecipeLink(content.text, studioAddress(), recipe);
    return { path, content: { text: cardWithResults(card + snippetSection(use), name, results) } };
  });
}

function textOf({ extras }: Plan, file: string): string | undefined {
  const content = extras.find(({ path }) => path === file)?.content;
  return content && 'text' in content ? content.text : undefined;
}

function architectureOf(config: string | undefined): string | undefined {
  if (config === undefined) return undefined;
  const names = parseModelConfig(config, 'config.json').raw.get('architectures');
  const first = Array.isArray(names) ? names[0] : undefined;
  return typeof first === 'string' ? first : undefined;
}

function optional<K extends string>(key: K, value: string | undefined): Partial<Record<K, string>> {
  return value === undefined ? {} : ({ [key]: value } as Record<K, string>);
}

/** Failures that would come again: what is written is of no use then. */
const FUTILE: ReadonlySet<ErrorCode> = new Set(['NonFinite', 'MergeUndefined', 'Internal']);

/**
 * Runs a merge, or continues an interrupted one. Whatever fails, nothing that looks complete is left: what was
 * written is kept to be resumed where the destination can do that, else it is discarded.
 * @param phases of the job that this is a part of, {@link mergePhases} among them. Default: these alone
 * @param watch gets what the shards get
 * @throws AmalgamError `PlanHasErrors`, `Canceled`, `RunChanged`, and what sources, engine and destination throw
 */
export async function runMerge(
  planned: Plan,
  request: MergeRequest,
  models: OpenModels,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void,
  phases: Phases = trackPhases(mergePhases(planned, models, request.resume)),
  watch?: ShardWatch,
): Promise<MergeReport> {
  requireClean(planned);
  if (planned.cut) {
    throw new AmalgamError(
      'Usage',
      'A merge that is cut to a LoRA cannot be a stage, or be verified by merging it again.',
      'Merge with output: model, and extract the LoRA from the result.',
    );
  }
  const before = phases.seconds();
  phases.rest('opening');
  const { calibration } = planned;
  const calibrated = await calibrate(calibration?.plan ?? planned, {
    models,
    engine: request.engine,
    factored: calibration !== undefined,
    signal,
    onProgress,
    phases,
  });
  phases.rest('opening');
  if (calibration) calibration.take(calibrated!.prepared!);
  const plan = calibration ? planned : (calibrated?.plan ?? planned);
  const part = request.part && (await planPart(plan, request.part, models));
  const own = part?.plan ?? plan;
  let engine: Backend | undefined;
  let threads: OpenMergeThreads | undefined;
  const meter = progressMeter(onProgress, () => threads ?? engine, undefined, phases);
  let inputs: HashedInputs | undefined;
  let destination: Destination | undefined;
  let gguf: GgufOutput | undefined;
  try {
    // what can refuse does so before anything is downloaded
    destination = await openDestination(request.destination, request.resume);
    const record = await openRunRecord(destination, request.resume ?? false);
    const begun = record.found?.begun.engine;
    const elements = own.tensors.reduce((sum, tensor) => sum + tensor.elements, 0);
    engine = await openBackend(request.engine === 'auto' && begun ? begun : request.engine);
    const { kind, adapter } = engine;
    await record.begin(plan, engine, request.stream);
    if (!record.found) await destination.requireRoom?.(own.bytesToWrite);
    const toDownload = models.passing ? 0 : own.bytesToDownload;
    if (toDownload > 0) meter.begin('downloading', toDownload, 0);
    const hashing = {
      begin: (bytes: number) => meter.begin('hashing', bytes, 0),
      advance: (bytes: number, name: string) => meter.advance(bytes, name),
    };
    inputs = await openHashedInputs(
      own,
      models,
      signal,
      (bytes, name) => meter.advance(bytes, name),
      hashing,
      calibrated?.hashes,
    );
    // what an interrupted run has read is looked at again before anything is added to it
    if (record.found) await inputs.hashAll(hashing);
    // a tree hash is known when all is read, which is too late for the first bytes of a file
    const known = new Map(
      [...hubHashes(plan, models), ...inputs.known].filter(([, hash]) => !isTreeHash(hash)),
    );
    const shardPlans = finishShards(plan, known);
    gguf =
      plan.gguf &&
      openGguf({ ...plan, gguf: plan.gguf }, shardPlans, request.destination, known, calibrated?.imatrix);
    const files = gguf?.isAlone
      ? [gguf.file]
      : shardPlans.filter(({ file }) => !part || part.files.has(file));
    if (record.found) meter.begin('checking', bytesLeft(record.found), 0);
    const beside = gguf && !gguf.isAlone ? gguf.file : undefined;
    const done = await record.point(files, beside, inputs.pieces, signal, (bytes, file) =>
      meter.advance(bytes, file),
    );
    // weights come last: a folder that was cut off is not taken for a model
    const use = usesOf(plan, request.destination, gguf?.file.file);
    const recipe = formatRecipe(plan.recipe);
    const extras = cardsWithUses(plan, use, request.results ?? [], request.destination, recipe);
    await writeSmallFiles(extras, models, destination, signal);
    const bytesOf = new Map(plan.tensors.map(({ name, dtype, shape }) => [name, tensorBytes(dtype, shape)!]));
    const order = files.flatMap((file) => file.tensors.map(({ name }) => bytesOf.get(name)!));
    const beginMerging = () =>
      meter.begin('merging', sumOf(order), order.length, {
        bytes: sumOf(order.slice(0, done.tensors.length)),
        reports: done.tensors,
      });
    const isMeasured = measuredTensors(own, methodById).length > 0;
    const measured =
      part && isMeasured ? await openMeasured(plan, await inputs.hashAll(hashing), kind) : undefined;
    if (!isMeasured || measured?.known) beginMerging();
    const measuring = {
      begin: (bytes: number, tensors: number) => meter.begin('measuring', bytes, tensors),
      advance(tensor: string, bytes: number) {
        meter.advance(bytes, tensor);
        meter.finishTensor();
      },
      end: beginMerging,
    };
    const onBytes = (bytes: number, tensor: string) => meter.advance(bytes, tensor);
    const shared = {
      plan: own,
      ...(calibrated?.prepared && !calibration ? { prepared: calibrated.prepared } : {}),
      ...(request.tileElements === undefined ? {} : { tileElements: request.tileElements }),
      measuring,
      onBytes,
    };
    const count = threadCount(kind, elements);
    if (count > 0) {
      threads = await openMergeThreads({ ...shared, inputs, count, ...(gguf && { gguf: gguf.forThreads }) });
      destination.readBackBy?.(threads.hash);
    }
    const recover = deviceRecovery({
      reopen: () => openBackend(kind),
      replace: (fresh) => {
        engine?.close();
        engine = fresh;
      },
      tell: (note) => meter.tell(note),
    });
    const { tensors, shards } = await runPlan<WrittenShard>({
      ...shared,
      shards: files,
      engine,
      methods: methodById,
      read: inputs.read,
      signal,
      done,
      recover,
      ...(threads && { threads }),
      ...(measured && { measured }),
      ...(gguf && {
        encoding: {
          encoder: gguf.encoder,
          ...(beside && { beside: { plan: beside, open: () => record.openBeside() } }),
        },
      }),
      openShard: async (shard, skipped) => {
        const sink = await record.openShard(shard, skipped);
        const watched = await watch?.(shard);
        return {
          ...sink,
          async write(bytes, at) {
            await watched?.(bytes, at);
            await meter.timed('write', () => sink.write(bytes, at));
          },
        };
      },
      onWait: (seconds) => meter.spend('read', seconds),
      onTensor: (report) => meter.finishTensor(report),
    });
    await inputs.passing?.requireSound();
    phases.rest('finishing');
    if (beside) shards.push(await (await record.openBeside()).finish());
    if (!plan.places) await writeIndex(destination, shardPlans);
    if (request.part && part) {
      await inputs.hashRest(hashing, part.hashes);
      const record = await partRecord(request.part, `${kind} ${adapter}`, own, inputs);
      await writeWhole(destination, PART_FILE, JSON.stringify(record));
    }
    const hashes = part ? inputs.known : await inputs.hashAll(hashing);
    await commitOutput(destination, Object.fromEntries(hashes));
    meter.flush();
    const spent = secondsSince(before, phases.seconds());
    return {
      recipe: plan.recipe,
      recipeSha256: await textSha256(recipe),
      engine: kind,
      adapter,
      version: AMALGAM_VERSION,
      seconds: sumOf(Object.values(spent)),
      stages: meter.stages(),
      phases: spent,
      peakBytes: plan.peakBytes,
      inputs: own.inputs.flatMap(({ folder, file }) => {
        const hash = hashes.get(inputName(folder, file));
        return hash === undefined ? [] : [{ id: folder, file, hash }];
      }),
      shards: shards.map(({ file, bytes, hash }) => ({ file, bytes, hash })),
      tensors,
      ...(inputs.passing && { passed: inputs.passing.passed() }),
      use,
      ...(calibrated ? { ahead: calibrated.report } : {}),
    };
  } catch (error) {
    // the studio resumes recipes of merges only
    const keep = planned.madeBy && !request.resume ? undefined : destination?.remains?.keep;
    const { code } = errorReport(error);
    // what was written of inputs that came altered is of no use either
    const isFutile = FUTILE.has(code) || (models.passing && code === 'IntegrityError');
    await (keep && !isFutile ? keep() : destination?.discard());
    throw error;
  } finally {
    inputs?.close();
    gguf?.close();
    threads?.close();
    engine?.close();
  }
}

/** Phases of a merge, as far as they follow from its plan. */
export function mergePhases(plan: Plan, models: OpenModels, resume = false): PlannedPhase[] {
  const calibrating = calibrationPhases(plan.calibration?.plan ?? plan);
  const hashing = (isHashed: (file: ModelFile) => boolean): PlannedPhase[] => {
    const files = plan.inputs.filter(({ folder, file }) => isHashed(models.file(folder, file).file));
    const bytes = files.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return bytes > 0 ? [{ phase: 'hashing', work: bytes }] : [];
  };
  // results of calibration are stored under the hashes of their inputs
  const all = calibrating.length > 0 || resume;
  const first = hashing(({ sha256, claimedSha256 }) => sha256 === undefined && (all || !!claimedSha256));
  const whole = measuredTensors(plan, methodById).length > 0;
  return [
    ...(plan.bytesToDownload > 0 && !models.passing
      ? [{ phase: 'downloading' as const, work: plan.bytesToDownload }]
      : []),
    ...first,
    ...calibrating,
    ...(resume ? [{ phase: 'checking' as const, work: 0 }] : []),
    ...(whole ? [{ phase: 'measuring' as const, work: plan.bytesToRead }] : []),
    { phase: 'merging', work: plan.bytesToWrite },
  ];
}

/** The sha256s that the Hub has for the inputs. */
function hubHashes({ inputs }: Plan, models: OpenModels): [string, string][] {
  return inputs.flatMap(({ folder, file }) => {
    const { sha256 } = models.file(folder, file).file;
    return sha256 === undefined ? [] : [[inputName(folder, file), sha256] as [string, string]];
  });
}

function secondsSince(before: PhaseSeconds, now: PhaseSeconds): PhaseSeconds {
  const spent: PhaseSeconds = {};
  for (const [phase, seconds] of Object.entries(now) as [keyof PhaseSeconds, number][]) {
    spent[phase] = seconds - (before[phase] ?? 0);
  }
  return spent;
}

/** Bytes of files that an interrupted run has written, by its journal. */
function bytesLeft({ safePoints }: RunJournal): number {
  return sumOf([...new Map(safePoints.map(({ file, bytes }) => [file, bytes])).values()]);
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}
