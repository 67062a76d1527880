/** A merge of which this process writes a part: what is read for it, and what is told of it. */
import { AmalgamError } from '../errors';
import { hex } from '../formats/hashes';
import { filesOfPart, type OutputPart, type PartRecord } from '../formats/output-part';
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import type { OpenModels } from '../host/models';
import { type HashedInputs, type InputHashes, missingBytes } from '../host/weight-inputs';
import { inputName } from '../inputs/stored-tensor';
import { methodById } from '../merge/methods';
import type { Plan } from '../merge/plan/plan';
import { planInputs } from '../merge/plan/plan-bytes';
import { measuredTensors } from '../merge/run/whole-model';
import type { WholeModel } from '../merge/tensor/delta-pipeline';
import type { Threshold } from '../merge/tensor/radix-select';
import type { BackendKind } from '../reports/backend';
import { TREE_PIECE_BYTES } from '../sources/tree-hash';
import { openRecords, type RecordHeader } from '../store/masks';

/** What a part takes of a plan. */
export interface PartPlan {
  /** Tensors of the part alone, and what they are read from. */
  plan: Plan;
  /** Names of its files. */
  files: ReadonlySet<string>;
  /** Whether this part hashes a piece of an input that the merge does not read: of every file each reader has its range. */
  hashes(name: string, piece: number): boolean;
}

/**
 * The part of a plan; number 0 has no file, and is there for what comes before all. Inputs are those of its tensors, so that no more is downloaded; all of them where whole models are
 * measured first.
 * @throws AmalgamError `Usage` for more parts than files
 */
export async function planPart(plan: Plan, part: OutputPart, models: OpenModels): Promise<PartPlan> {
  const fileOf = (folder: string, file: string) => models.file(folder, file).file;
  const isMeasured = measuredTensors(plan, methodById).length > 0;
  const takenBy = (index: number) => {
    const files = new Set(filesOfPart(plan.shards, { index, of: part.of }).map(({ file }) => file));
    const names = new Set(
      plan.shards.flatMap(({ file, tensors }) => (files.has(file) ? tensors.map(({ name }) => name) : [])),
    );
    const tensors = plan.tensors.filter(({ name }) => names.has(name));
    return { files, tensors, inputs: isMeasured ? plan.inputs : planInputs(tensors, fileOf) };
  };
  const { files, tensors, inputs: read } = takenBy(part.index);
  // the header of every file has the hashes that are known, and one that is claimed is known when it was looked at
  const claimed = plan.inputs.filter(({ folder, file }) => fileOf(folder, file).claimedSha256 !== undefined);
  const named = new Map([...claimed, ...read].map((one) => [inputName(one.folder, one.file), one]));
  const inputs = [...named.values()];
  const share = tensors.length / plan.tensors.length;
  const readers = new Map<string, number[]>();
  for (let index = 1; index <= part.of; index++) {
    for (const { folder, file } of takenBy(index).inputs) {
      const name = inputName(folder, file);
      readers.set(name, [...(readers.get(name) ?? []), index]);
    }
  }
  return {
    plan: {
      ...plan,
      tensors: isMeasured ? plan.tensors : tensors,
      inputs,
      bytesToDownload: await missingBytes(inputs, models),
      bytesToRead: inputs.reduce((sum, { readBytes }) => sum + readBytes, 0),
      bytesToWrite: Math.ceil(plan.bytesToWrite * share),
    },
    files,
    hashes(name, piece) {
      const all = readers.get(name) ?? [];
      const pieces = Math.ceil((named.get(name)?.byteLength ?? 0) / TREE_PIECE_BYTES);
      return all[Math.floor((piece * all.length) / pieces)] === part.index;
    },
  };
}

/** @throws AmalgamError `Usage` for an output that is not files of weights beside each other */
export function requireParts({ stages, amalgam }: Recipe): void {
  const { gguf, ggufOnly, output } = amalgam;
  const what = stages
    ? 'made in stages'
    : (gguf ?? ggufOnly)
      ? 'a GGUF file'
      : output === 'adapter' && 'a LoRA';
  if (!what) return;
  throw new AmalgamError(
    'Usage',
    `The output is ${what}: only files of weights that stand beside each other are written in parts.`,
    'Write it in one, or write the model in parts and make this of the result.',
  );
}

interface MeasuredHeader extends RecordHeader {
  thresholds: [string, Threshold][];
  majority: number;
}

const MEASURED = 'whole models';

/** What whole models were measured to be, which one part, or `--prepare`, finds for all that share its cache. */
export async function openMeasured({ recipe }: Plan, hashes: InputHashes, engine: BackendKind) {
  const key = [MEASURED, 1, engine, formatRecipe(recipe), [...hashes].sort()];
  const folder = await openRecords(JSON.stringify(key), 'Thresholds of whole models');
  const found = (await folder.find<MeasuredHeader>(MEASURED))?.header;
  return {
    known: found && { thresholds: new Map(found.thresholds), majority: found.majority },
    keep: ({ thresholds, majority }: WholeModel) =>
      folder.write<MeasuredHeader>({ name: MEASURED, thresholds: [...thresholds], majority }, []),
  };
}

/** Contents of the file that says what part it is of a part. */
export async function partRecord(
  part: OutputPart,
  engine: string,
  plan: Plan,
  { pieces }: Pick<HashedInputs, 'pieces'>,
): Promise<PartRecord> {
  const bytes = new Map(
    plan.inputs.map(({ folder, file, byteLength }) => [inputName(folder, file), byteLength]),
  );
  const inputs: PartRecord['inputs'] = {};
  for (const [name, leaves] of await pieces()) {
    const read = [...leaves].sort(([a], [b]) => a - b);
    inputs[name] = {
      byteLength: bytes.get(name)!,
      pieces: await Promise.all(
        read.map(async ([piece, leaf]) => [piece, hex(await leaf)] as [number, string]),
      ),
    };
  }
  return { ...part, engine, inputs };
}
