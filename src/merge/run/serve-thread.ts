/** The worker's side of a thread of a run (remote-thread.ts). */
import * as Comlink from 'comlink';
import { ggufEncoder } from '../../gguf/gguf-file';
import type { ThreadTools } from '../../host/serve-thread';
import { rethrow, sharedAccess } from '../../platform';
import { pieceDigest } from '../../sources/piece-digest';
import { giveBack } from '../../sources/spare-arrays';
import { type Leaf, TREE_PIECE_BYTES } from '../../sources/tree-hash';
import { writeAt } from '../../write/opfs-sink';
import { methodById } from '../methods';
import type { TensorPlan } from '../plan/plan';
import type { Prepared } from '../tensor/prepared';
import { openMergeThread, type UnitOutput } from './merge-thread';
import type { MergeCalls, MergeOwner, MergeWork, PreparedOutline } from './remote-thread';

/** Opens the merging of units. */
export function openMerging(work: MergeWork, tools: ThreadTools): MergeCalls {
  const { engine, read, disk, spend } = tools;
  const { plan, gguf, room, measured, told } = work;
  const owner = tools.owner as Comlink.Remote<MergeOwner>;
  const outlines = new Map<string, { outline: PreparedOutline; tensor: TensorPlan }>();
  const outputs = new Map<string, FileSystemSyncAccessHandle>();
  const openOutput = async ({ file, place }: UnitOutput) => {
    const open = outputs.get(file);
    if (open) return open;
    const handle = place!.kind === 'disk' ? disk!.file(place!) : (await sharedAccess(place!.file)).handle;
    outputs.set(file, handle);
    return handle;
  };
  let underWay: Promise<void> = Promise.resolve();
  const waitingFor = async (writing: () => Promise<void>) => {
    const begun = performance.now();
    await writing();
    spend('write', (performance.now() - begun) / 1000);
  };
  const thread = openMergeThread({
    ...{ plan, room, measured, engine, read },
    methods: methodById,
    async write(output, bytes, at) {
      if (output.place) {
        const file = await openOutput(output);
        await waitingFor(async () => writeAt(output.file, file, bytes, at));
        return;
      }
      // the next piece is made while this one is written
      await waitingFor(() => underWay);
      underWay = owner.write(output.file, Comlink.transfer(bytes, [bytes.buffer]), at).then(
        // the memory comes back
        ({ buffer }) => giveBack(buffer),
        rethrow,
      );
      underWay.catch(() => {}); // reported when it is awaited
    },
    ...(gguf && {
      encoder: (names, put) =>
        ggufEncoder({
          ...{ plan: gguf.plan, names, engines: [engine], write: put },
          ...(gguf.importance && { importance: gguf.importance }),
        }),
    }),
    ...(work.isPrepared && { prepared: preparedBy(owner, outlines) }),
    ...(work.tileElements === undefined ? {} : { tileElements: work.tileElements }),
    onWait: (seconds) => spend('read', seconds),
    ...(tools.onDone && { onBytes: tools.onDone }),
  });
  return {
    measure: () =>
      thread.measure({
        begin: (bytes, count) => tools.tell(owner.measuring('begin', bytes, count)),
        advance: (tensor, bytes) => tools.tell(owner.measuring('advance', tensor, bytes)),
        end: () => tools.tell(owner.measuring('end')),
      }),
    async merge(given, wholeModel, prepared, spares) {
      for (const buffer of spares) giveBack(buffer);
      const tensors = given.tensors.map((tensor) => (typeof tensor === 'number' ? told[tensor]! : tensor));
      const unit = { ...given, tensors };
      for (const [file, handle] of outputs) {
        if (unit.outputs.some((output) => output.file === file)) continue;
        handle.close();
        outputs.delete(file);
      }
      outlines.clear();
      for (const [i, outline] of (prepared ?? []).entries()) {
        const tensor = tensors[i]!;
        outlines.set(tensor.name, { outline, tensor });
      }
      const merged = await thread.merge(unit, wholeModel);
      await waitingFor(() => underWay);
      tools.handOver(merged.parts.flatMap(({ head, tail }) => [head.buffer, tail.buffer]));
      return merged;
    },
    async hash(origin, pieces) {
      const source = await tools.openOrigin(origin);
      try {
        const leaves: Leaf[] = [];
        for (const piece of pieces) {
          const begin = piece * TREE_PIECE_BYTES;
          const bytes = await source.read(begin, Math.min(begin + TREE_PIECE_BYTES, source.byteLength));
          leaves.push(await pieceDigest(bytes));
          giveBack(bytes.buffer);
        }
        return leaves;
      } finally {
        source.close();
      }
    },
  };
}

/** Results of calibration that are with the owner: it tells of a unit's tensors with the unit, and is asked for the values. */
function preparedBy(
  owner: Comlink.Remote<MergeOwner>,
  outlines: ReadonlyMap<string, { outline: PreparedOutline; tensor: TensorPlan }>,
): Prepared {
  return {
    selection(tensor, model) {
      const found = outlines.get(tensor);
      const index = found?.tensor.models.findIndex(({ id }) => id === model) ?? -1;
      const selection = found?.outline.selections[index];
      if (!selection) return undefined;
      const { kind, kept } = selection;
      const values = (begin: number, end: number) => owner.selected(tensor, model, begin, end).catch(rethrow);
      return kind === 'mask'
        ? { kind, kept, mask: (begin, end) => values(begin, end) as Promise<Uint32Array<ArrayBuffer>> }
        : { kind, kept, values: (begin, end) => values(begin, end) as Promise<Float32Array<ArrayBuffer>> };
    },
    solution(tensor) {
      const solution = outlines.get(tensor)?.outline.solution;
      return (
        solution && {
          ...solution,
          values: (begin, end) => owner.solved(tensor, begin, end).catch(rethrow),
        }
      );
    },
    rowWeights: (tensor) => outlines.get(tensor)?.outline.rowWeights,
  };
}
